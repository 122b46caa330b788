/* Words of a command line, and arguments in the lists that Python prints. Nothing is expanded and
 * nothing is run. */
#ifndef SIM_IMPORT_WORDS_H
#define SIM_IMPORT_WORDS_H

#include <stdbool.h>
#include <stddef.h>

#include "inflight/error.h"

struct words {
    char **of;      /* NULL-ended; they lie in `text` */
    bool *is_break; /* of each: true if it is no word but the end of a command: ; & | or a line's
                       end */
    size_t n;
    char *text;
};

/* Splits a line as a shell does: at blanks outside quotes. A backslash takes the next character
 * literally, and removes a line's end. Comments and redirections are left out, except "# version
 * 0.9.1": its # is a break. A line that begins with - continues the command of the previous line.
 * Returns 0 or a negative code; on success the caller must call words_free. */
int words_split(const char *line, struct words *words, struct ifl_error *error);
void words_free(struct words *words);

/* True if the word is among the names, which a NULL ends. */
bool word_is_one_of(const char *word, const char *const *names);

/* Reads the next argument of `name=value, 'name': value, ...`, up to a bracket that closes the list
 * or to the end; brackets and quotes within a value are part of it. If the list lacks a comma, a
 * blank before the next name ends a value, too. The argument points into the text, which is
 * changed; quotes around a value are removed. Returns false at the end. */
struct argument {
    char *name, *value; /* value NULL: there is none */
};
bool argument_next(char **at, struct argument *argument);

/* How a list that reaches the end of a text ends. CLOSED: after the bracket that was open before
 * it, if has_bracket. OPEN: within a value or a name. MAY_GO_ON: with a complete argument, after
 * which another one may follow. A list that ends in "..." was shortened by hand and counts as
 * complete. */
enum list_end { LIST_CLOSED, LIST_OPEN, LIST_MAY_GO_ON };
enum list_end list_end_of(const char *at, bool has_bracket);

#endif
