/* Did you mean ...? The right names near a misspelt one. */
#ifndef INFLIGHT_NEAREST_H
#define INFLIGHT_NEAREST_H

#include <stdbool.h>
#include <stddef.h>

/* Returns, borrowed, the first of these that exists:
 *   - the candidate nearest to `word` by edit distance, at most one slip in three letters (below
 *     six letters one); of equals the first;
 *   - if the word has two letters or more, the first candidate that continues it with _ or -
 *     ("ttft_s" for "ttft");
 *   - NULL.
 * No distance is measured to words of more than 63 bytes. Upper and lower case differ. */
const char *ifl_nearest(const char *word, const char *const *candidates, size_t n);

/* The candidates near to `word` among names that come in families, such as llama-2-7b or vllm-v1.
 * They are those of the first rule that matches any:
 *   1. the same letters and digits, whatever the case and the hyphens;
 *   2. the name begins with the word as a whole part ("vllm");
 *   3. one or two slips apart;
 *   4. the name begins with the word;
 *   5. the name begins with the first parts of the word ("sarathi" of "sarathi-serve", "vllm" of
 *      "vllm1");
 *   6. the nearest by edit distance, as in ifl_nearest.
 * Fills `near`, which may be NULL if cap is 0, with up to `cap` of them, borrowed, in the
 * candidates' order; returns their number, which may be larger than cap, or 0. */
size_t ifl_nearest_names(const char *word, const char *const *candidates, size_t n,
                         const char **near, size_t cap);

#endif
