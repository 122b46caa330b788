/* The table of the log lines that the import reads: their patterns, and the facts that they give.
 */
#ifndef SIM_IMPORT_LOG_LINES_H
#define SIM_IMPORT_LOG_LINES_H

#include "import/facts.h"

enum line_form {
    LINE_FACTS,    /* the pattern's groups are facts */
    LINE_ALSO,     /* the same; the fact may have several values */
    LINE_FORCED,   /* the same, in place of what the server was asked for */
    LINE_LATEST,   /* the same, in place of what such a line said before */
    LINE_FIRST,    /* the same for the first such line; a later one says the second fact */
    LINE_UNREAD,   /* a fact is there, but not in a form that it is read in */
    LINE_ANEW,     /* takes back what was said of the facts before */
    LINE_LIST,     /* behind the pattern stands a list of arguments */
    LINE_RESOLVED, /* the same; what it says counts in place of what the server was asked for */
    LINE_WHOLE,    /* with the pattern begins a list of arguments */
    LINE_START,    /* a server starts: facts, then a list of arguments */
    LINE_HARMLESS, /* the pattern is not used */
    LINE_UNMODELLED
};

enum { MAX_LINE_FACTS = 3 };

/* A line with facts or a list shows which server it is of, unless it is shared; harmless ones and
 * those that are not modelled do not. */
struct log_line {
    enum server server;
    enum line_form form;
    const char *part;    /* that a line must have: looked for before the pattern */
    const char *pattern; /* extended regular expression, with a group a fact */
    const char *facts[MAX_LINE_FACTS];
    const char *keys[MAX_LINE_FACTS]; /* that they map to; NULL: none */
    const char *says;                 /* why it is not modelled */
    bool is_shared; /* other servers print it, too: it does not show which one this is */
};

extern const struct log_line log_lines[];
extern const size_t n_log_lines;

#endif
