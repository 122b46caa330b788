/* Functions shared by the writers of shell-completion scripts. */
#ifndef SIM_CLI_COMPLETION_H
#define SIM_CLI_COMPLETION_H

#include <stdio.h>

#include "cli/options.h"

/* The values that an option can have, separated by blanks, from its text, in which bars separate
 * them. Empty if the value is no word of a list. */
const char *completion_words(const struct option_spec *option, char words[64]);
/* "file", "setting" */
const char *completion_name(enum completion completion);
/* Keys whose values `inflight list` can list: returns the i-th key, with the topic to list in
 * *topic; NULL after the last. */
const char *completion_key(size_t i, const char **topic);
/* True for the first command of each first word. */
bool completion_is_first(size_t i);

/* Describes the first word of the i-th command; for a group, lists its second words. */
const char *completion_doc(size_t i, char text[256]);

/* Writes the text in single quotes, in which '\'' is a quote in all three shells, with a backslash
 * before each character in `escaped`. */
void completion_put_quoted(FILE *out, const char *text, const char *escaped);
/* All first words of commands, and all second words behind one of them, with blanks between. */
void completion_put_first_words(FILE *out);
void completion_put_second_words(FILE *out, const char *group);
/* The words of `inflight list`, from its arguments. */
void completion_put_topics(FILE *out);

#endif
