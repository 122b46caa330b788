/* Words of a command line, and arguments in the lists that Python prints. Nothing is expanded and
 * nothing is run. */
#ifndef SIM_IMPORT_WORDS_H
#define SIM_IMPORT_WORDS_H

#include <stdbool.h>
#include <stddef.h>

#include "inflight/error.h"

struct words {
    char **of;      /* NULL-ended; they lie in `text` */
    bool *is_break; /* of each: no word, but the end of a command: ; & | or a line's end */
    size_t n;
    char *text;
};

/* Splits as a shell does: at blanks outside quotes; a backslash takes the next character as it is,
 * and with a line's end both away. Comments and redirections are left out, but for "# version
 * 0.9.1": its # is a break. A line that begins with - goes on with the command before it. 0 or a
 * negative code; the caller owes words_free on success. */
int words_split(const char *line, struct words *words, struct ifl_error *error);
void words_free(struct words *words);

/* The next of `name=value, 'name': value, ...`, up to a bracket that closes the list or the end;
 * brackets and quotes in a value are part of it. Where a list forgets a comma, a blank before the
 * next name ends a value, too. The item lies in the text, which is changed; a value in quotes loses
 * them. False at the end. */
struct argument {
    char *name, *value; /* value NULL: there is none */
};
bool argument_next(char **at, struct argument *argument);

/* How a list ends that goes up to the end of a text: behind the bracket that was open before it,
 * which `has_bracket` says there is; within a value or a name; or with a whole argument, behind
 * which another one may follow. A list that ends in "..." was shortened by hand and counts as
 * whole. */
enum list_end { LIST_CLOSED, LIST_OPEN, LIST_MAY_GO_ON };
enum list_end list_end_of(const char *at, bool has_bracket);

#endif
