/* What the scripts by which shells complete a command line have in common. */
#ifndef SIM_CLI_COMPLETION_H
#define SIM_CLI_COMPLETION_H

#include <stdio.h>

#include "cli/options.h"

/* The values that an option can have, from its text with bars between them; here with blanks
 * between them. Empty if the option's value is no word of a list. */
const char *completion_words(const struct option_spec *option, char words[64]);
/* "file", "setting" */
const char *completion_name(enum completion completion);
/* The keys of a configuration with values that `inflight list` lists: the i-th key, and in *topic
 * the topic to list; NULL behind the last. */
const char *completion_key(size_t i, const char **topic);
/* True for the first command of each first word. */
bool completion_is_first(size_t i);

/* What the first word of the i-th command is for; of a group, its second words. */
const char *completion_doc(size_t i, char text[256]);

/* The text between single quotes, where '\'' is a quote in all three shells; a backslash before
 * each letter of `escaped`. */
void completion_put_quoted(FILE *out, const char *text, const char *escaped);
/* All first words of commands, and all second words behind one of them, with blanks between. */
void completion_put_first_words(FILE *out);
void completion_put_second_words(FILE *out, const char *group);
/* The words of `inflight list`, from its arguments. */
void completion_put_topics(FILE *out);

#endif
