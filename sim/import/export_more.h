/* Arguments of a server that depend on several keys at once: speculation and tiers. Each function
 * writes them as words of a command line, with a blank before each word; "" if there are none, or
 * if no argument can express the keys. */
#ifndef SIM_IMPORT_EXPORT_MORE_H
#define SIM_IMPORT_EXPORT_MORE_H

#include "base/server_flags.h"
#include "base/tree.h"

/* Returns the value of a key, "" if there is none; of several admissions, that of the last one,
 * which decides about blocks. */
const char *key_text(const struct node *root, const char *key);
bool key_is(const struct node *root, const char *key, const char *text);

/* Returns the text as one word of a shell, quoted in `word` if necessary. */
const char *shell_word(const char *text, char *word, size_t n_bytes);

/* True if vLLM schedules these guesses, or none, asynchronously by default. */
bool export_goes_ahead(const struct node *root);

/* `root` must have every key. The arguments for vLLM are those of 0.8.5 and later. */
void export_drafts(const struct node *root, enum server server, char *words, size_t n_bytes);
void export_tiers(const struct node *root, enum server server, char *words, size_t n_bytes);

#endif
