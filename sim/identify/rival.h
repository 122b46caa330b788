/* Rivals: other models of the recorded runs, such as another preset or a server without a prefix
 * cache. A rival is fitted as the configuration is, and compared with it. */
#ifndef SIM_IDENTIFY_RIVAL_H
#define SIM_IDENTIFY_RIVAL_H

#include "identify/quest.h"

/* If the configuration has a prefix cache and the requests share prompts: tries a server without a
 * cache. Fills found->rival if that explains the runs better. */
int rival_without_cache(struct quest *quest, struct ifl_error *error);
/* If options->study is given: tries the presets that come with inflight. Fills found->rival with
 * the one that explains the runs best, if it is better than the configuration. */
int rival_preset(struct quest *quest, struct ifl_error *error);

/* ---- for the files of rivals ---- */

/* Statistics of the difference of two log-likelihoods. */
struct rival_gain {
    double sds;     /* over its standard deviation, that of sums of spans */
    double request; /* its mean over requests, nats */
    size_t n_ahead; /* spans in which the rival is likelier */
};

/* By how much a rival must explain a request better, in the mean, nats: the profile's own errors
 * make models of one engine differ by less. */
static const double rival_least_gain = 0.5;

/* Vuong's test of models that are not nested (Econometrica 57, 1989). Both fits must have
 * predicted. */
int rival_compare(const struct fit *fit, const struct fit *rival, struct rival_gain *gain,
                  struct ifl_error *error);
/* Searches all parameters of another model of the same runs, and compares it with what was found.
 * The caller must call rival_close, after an error, too. */
int rival_search(const struct quest *quest, const struct identify_options *options,
                 struct quest *rival, struct rival_gain *gain, struct ifl_error *error);
void rival_close(struct quest *rival);
/* True if the rival is better: by the mean gain, and in Vuong's test at that level. */
bool rival_is_better(const struct quest *quest, const struct rival_gain *gain, double level);

#endif
