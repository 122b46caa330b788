/* The JSON body of a request, as servers of OpenAI's API take it. */
#ifndef SIM_LIVE_REPLAY_BODY_H
#define SIM_LIVE_REPLAY_BODY_H

#include <stdbool.h>

#include "live/replay_prompt.h"

enum replay_prompts { REPLAY_PROMPT_IDS, REPLAY_PROMPT_WORDS };

struct replay_body {
    const char *model;
    bool chat; /* /v1/chat/completions, with words; else /v1/completions */
    enum replay_prompts prompts;
    const struct replay_words *words; /* borrowed; not read where prompts are ids */
    bool may_stop;                    /* the answer may end before its length is reached */
    bool sends_priority;      /* send the priority of rows that have one; servers that do not order
                                 by priority refuse it */
    const char *const *extra; /* [n_extra] "KEY=JSON", which replace what is here */
    size_t n_extra;
};

/* Checks that each extra is a key with JSON, or with a word, which counts as text. Returns
 * IFL_E_INPUT otherwise. */
int replay_body_check(const struct replay_body *body, struct ifl_error *error);
/* Makes the body of a request with n_output tokens. It is NUL-ended; the caller frees text->of.
 * wants_ids: the ids of the answer are asked for. */
int replay_body_write(const struct replay_body *body, const struct arrival *arrival,
                      int32_t n_output, bool wants_ids, const int32_t *ids,
                      struct replay_text *text, struct ifl_error *error);

#endif
