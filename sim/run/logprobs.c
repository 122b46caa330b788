#include "run/logprobs.h"

#include <math.h>

#include "inflight/minmax.h"

/* ln sum exp(x), with the largest x taken out. */
static double log_sum(const float *x, int32_t n)
{
    double most = x[0], sum = 0;
    for (int32_t i = 1; i < n; i++)
        most = fmax(most, x[i]);
    for (int32_t i = 0; i < n; i++)
        sum += exp(x[i] - most);
    return most + log(sum);
}

/* Puts the token where it belongs among the likeliest, of which there are n_best at most. */
static void rank(struct ifl_logprobs *of, int32_t n_best, int32_t token, double value)
{
    if (of->n == n_best && (n_best == 0 || value <= of->of[n_best - 1]))
        return;
    int32_t at = of->n < n_best ? of->n++ : n_best - 1;
    for (; at > 0 && value > of->of[at - 1]; at--) {
        of->of[at] = of->of[at - 1];
        of->token[at] = of->token[at - 1];
    }
    of->of[at] = value;
    of->token[at] = token;
}

void logprobs_of(const float *logits, int32_t n_vocab, int32_t token, int32_t n_best,
                 struct ifl_logprobs *of)
{
    const double sum = log_sum(logits, n_vocab);
    const int32_t most = ifl_min(ifl_min(n_best, (int32_t)IFL_MOST_LOGPROBS), n_vocab);
    of->of_token = logits[token] - sum;
    of->n = 0;
    for (int32_t i = 0; i < n_vocab; i++)
        rank(of, most, i, logits[i] - sum);
}
