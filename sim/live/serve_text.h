/* Converts between texts and tokens if no tokenizer is configured.
 *
 * A text is cut into pieces of four bytes from its beginning, the last one shorter; each is a
 * token. The answers of a simulation are made of words of three letters behind a blank, which are
 * such pieces: an answer of k tokens that comes back in a prompt counts k tokens, the same ones.
 * Messages of a chat are cut one by one, each between a piece of its role and one that ends it. */
#ifndef SIM_LIVE_SERVE_TEXT_H
#define SIM_LIVE_SERVE_TEXT_H

#include <stddef.h>
#include <stdint.h>

#include "inflight/error.h"

struct tokens {
    int32_t *of; /* [n], owned */
    size_t n, cap;
};

void tokens_free(struct tokens *tokens); /* zeroed memory is valid */
/* Adds a token. Returns 0 or IFL_E_NOMEM. */
int tokens_add(struct tokens *tokens, int32_t token);
int tokens_add_text(struct tokens *tokens, const char *text, size_t n_bytes);
/* Adds a message of a chat. Returns 0 or IFL_E_NOMEM. */
int tokens_add_message(struct tokens *tokens, const char *role, const char *text, size_t n_bytes);
/* Adds the tokens before the answer of a chat. Returns 0 or IFL_E_NOMEM. */
int tokens_add_turn(struct tokens *tokens);

enum { TOKEN_TEXT_BYTES = 5 };
/* Writes the text of a token, with its NUL. */
void token_text(int32_t token, char text[TOKEN_TEXT_BYTES]);

#endif
