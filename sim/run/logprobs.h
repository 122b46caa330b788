/* Logarithms of probabilities, from a row of logits. */
#ifndef SIM_RUN_LOGPROBS_H
#define SIM_RUN_LOGPROBS_H

#include "inflight/executor.h"

/* Fills *of for the token and for the n_best likeliest tokens; n_best is at most IFL_MOST_LOGPROBS
 * and n_vocab. */
void logprobs_of(const float *logits, int32_t n_vocab, int32_t token, int32_t n_best,
                 struct ifl_logprobs *of);

#endif
