/* Removes keys, tokens and passwords from texts that a report repeats. */
#ifndef SIM_IMPORT_SECRETS_H
#define SIM_IMPORT_SECRETS_H

#include <stdbool.h>
#include <stddef.h>

/* True if a flag, a variable or a member of that name has a secret as its value. */
bool is_secret_name(const char *name, size_t n_chars);

/* Cuts the text after the first name of a secret that has a value ("--api-key x", "TOKEN=x",
 * "'password': 'x'"), and removes user and password from addresses ("redis://user:x@host"). */
void hide_secrets(char *text);

#endif
