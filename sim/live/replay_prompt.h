/* Prompts for rows of a trace that have only lengths: token ids, or words in their place.
 *
 * Ids are those of run/token_ids.h, keyed by the row and not by the order of arrival. Tokens that
 * the trace says are shared (prefix groups, hash ids, turns, retries) have the same ids; all others
 * have their own. The same seed and vocabulary give the same prompts in every run. */
#ifndef SIM_LIVE_REPLAY_PROMPT_H
#define SIM_LIVE_REPLAY_PROMPT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "inflight/error.h"

#include "live/replay_text.h"
#include "replica/live_request.h"

struct replay_vocabulary {
    uint64_t seed;
    int32_t first_id, n_ids; /* ids in [first_id, first_id + n_ids) */
};

/* Text sent before that begins a prompt: a turn's earlier turns, with the server's answers. */
struct replay_known {
    int32_t *ids; /* NULL: nothing */
    int32_t n;
};

/* Writes the ids of the request's prompt to ids[0, arrival->n_prompt). `known` may be NULL. */
void replay_prompt_ids(const struct replay_vocabulary *vocabulary, const struct arrival *arrival,
                       const struct replay_known *known, int32_t *ids);
/* Appends "[1,2,3]". */
int replay_prompt_list(const int32_t *ids, int32_t n, struct replay_text *text);
/* Words of which prompts are made if ids cannot be sent. */
enum { REPLAY_MOST_WORDS = 64 };
struct replay_words {
    const char *of[REPLAY_MOST_WORDS]; /* [n] constant texts */
    size_t n;
    bool blank_first; /* the first word of a prompt has a blank in front of it, too */
};

/* Common English words, each of which is one token of most vocabularies. */
void replay_words_common(struct replay_words *words);
/* Chooses the words that are one token each, also next to each other, in the tokenizer of that file
 * or folder, so that n words have exactly n tokens. Returns IFL_E_INPUT if the tokenizer cannot be
 * read or has too few such words. */
int replay_words_choose(const char *tokenizer_path, struct replay_words *words,
                        struct ifl_error *error);
/* Appends a word for each id, a blank between two. */
int replay_prompt_words(const struct replay_words *words, const int32_t *ids, int32_t n,
                        struct replay_text *text);

#endif
