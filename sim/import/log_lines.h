/* The table of the log lines that the import reads: their patterns, and the facts that they give.
 */
#ifndef SIM_IMPORT_LOG_LINES_H
#define SIM_IMPORT_LOG_LINES_H

#include "import/facts.h"

enum line_form {
    LINE_FACTS,    /* the pattern's groups are facts */
    LINE_ALSO,     /* as LINE_FACTS; the facts may have several values */
    LINE_FORCED,   /* as LINE_FACTS; the values replace those requested from the server */
    LINE_LATEST,   /* as LINE_FACTS; the values replace those of an earlier such line */
    LINE_FIRST,    /* as LINE_FACTS for the first such line; a later line gives the second fact */
    LINE_UNREAD,   /* as LINE_ALSO for one fact; the report has the line as unknown */
    LINE_ANEW,     /* removes the earlier values of the facts */
    LINE_POOL,     /* as LINE_FACTS, of a pool, which may replace an earlier one (log_pools.h) */
    LINE_LIST,     /* a list of arguments follows the pattern */
    LINE_RESOLVED, /* as LINE_LIST; the values replace those requested from the server */
    LINE_WHOLE,    /* a list of arguments begins with the pattern */
    LINE_START,    /* a server starts: facts, then a list of arguments */
    LINE_HARMLESS, /* the pattern is not used */
    LINE_UNMODELLED,
    LINE_DEVICE /* as LINE_UNMODELLED, once a file: of a device that no hardware profile is of */
};

enum { MAX_LINE_FACTS = 3 };

/* A line with facts or a list shows which server wrote it, unless is_shared. Harmless lines and
 * those that are not modelled do not. */
struct log_line {
    enum server server;
    enum line_form form;
    const char *part;    /* text that a line must contain: searched before the pattern is tried */
    const char *pattern; /* extended regular expression, with a group a fact */
    const char *facts[MAX_LINE_FACTS];
    const char *keys[MAX_LINE_FACTS]; /* keys that the facts map to; NULL: none */
    const char *says;                 /* why it is not modelled, or unknown */
    bool is_shared; /* other servers print the line, too: it does not show which server this is */
};

extern const struct log_line log_lines[];
extern const size_t n_log_lines;

#endif
