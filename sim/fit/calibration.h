/* Reads the sheets of inflight calibrate. A fit to such a sheet needs no profile to begin from. */
#ifndef SIM_FIT_CALIBRATION_H
#define SIM_FIT_CALIBRATION_H

#include "fit/adapters.h"
#include "fit/fit.h"

#define CALIBRATION_COLUMNS                                                                        \
    {                                                                                              \
        "op", "layers", "d_model", "q_heads", "kv_heads", "d_head", "d_ffn", "vocab",              \
            "element_bytes", "m", "n", "k", "prefill_seqs", "prefill_tokens", "prefill_q_kv",      \
            "prefill_q_q", "max_prefill_kv", "decode_seqs", "decode_context", "sampled", "blocks", \
            "block_bytes", "median_s", "min_s", "bytes", "flops"                                   \
    }

int calibration_sample(const struct adapter_row *row, struct fit_sample *sample,
                       struct ifl_error *error);

/* Begins a profile with the peaks of the first sheet among the data, and the texts about its
 * machine. */
int calibration_begin(const struct fit_data *data, struct platform *platform,
                      struct ifl_error *error);
/* Returns the code of `error` if some operation of a sheet was not fitted. */
int calibration_check_whole(const struct fit_report *report, struct ifl_error *error);

#endif
