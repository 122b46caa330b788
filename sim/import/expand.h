/* Variables that a text gives values to, and texts with these values in their places. Nothing is
 * run, and a variable without a value in the text stays as it is written. */
#ifndef SIM_IMPORT_EXPAND_H
#define SIM_IMPORT_EXPAND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "inflight/error.h"

struct variable {
    char *name, *value;
    bool is_list; /* the value is quoted words, as of ARGS=(--tp 2) */
};

struct variables {
    struct variable *of;
    size_t n, cap;
};

/* Sets a variable, or replaces its value. Returns 0 or IFL_E_NOMEM. */
int variables_set(struct variables *variables, const struct variable *variable);
void variables_forget(struct variables *variables, const char *name);
/* The variable whose name the first n_chars are; NULL: none. */
const struct variable *variables_get(const struct variables *variables, const char *name,
                                     size_t n_chars);
void variables_free(struct variables *variables);

/* How a value stands in the text around it. */
enum expand_as {
    EXPAND_BARE,    /* words of a shell: a blank ends one, other signs are escaped */
    EXPAND_QUOTED,  /* within double quotes */
    EXPAND_LITERAL, /* one word without its quotes, as behind NAME= */
    EXPAND_PLAIN,   /* a text that knows no quotes; $$ is a dollar sign, as in Compose */
};

/* ${NAME:=word} sets a variable. */
struct expansion {
    struct variables *variables;
    const struct variables *others; /* of variables without a value and without ${NAME:-word} */
    FILE *out;
    bool lacks_memory;
};

/* Writes the text with values in place of $NAME, ${NAME}, ${NAME:-word} and its like. A command
 * between $( and ) or backquotes stays one word, and secrets stay names. */
void expand_text(struct expansion *e, const char *text, enum expand_as as);
/* Writes the text with values in place of $(NAME), as Kubernetes does; $$(NAME) is $(NAME). */
void expand_parentheses(const struct variables *variables, const char *text, FILE *out);

/* How many characters a ${...}, $(...) or `...` at the beginning of the text has; 0: it has none
 * there, or no end. */
size_t expand_chars(const char *at);
/* The list that is the whole word, as in "${ARGS[@]}"; NULL: it is another word. */
const struct variable *expand_list(const struct variables *variables, const char *word);

/* 'text', with each ' in it escaped. */
void expand_quote(const char *text, FILE *out);

#endif
