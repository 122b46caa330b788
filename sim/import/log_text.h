/* The lines of a log, without colours and without what a container or a logger puts around them. */
#ifndef SIM_IMPORT_LOG_TEXT_H
#define SIM_IMPORT_LOG_TEXT_H

#include <stdio.h>

#include "import/facts.h"

struct log_text {
    FILE *in;
    const char *path;
    char *line;    /* the line that is read */
    long at;       /* 1-based number of its first part */
    bool is_cut;   /* the file ends within the line */
    char *ahead;   /* the next line, once log_text_peek has read it */
    int has_ahead; /* 1: it is there, 0: not looked at, -1: there is none */
    bool ahead_is_cut;
    long n_read;            /* lines, with the one ahead */
    int end;                /* the character that ends a line */
    long n_zeros, zeros_at; /* bytes of 0 that were skipped, and the line of the first */
};

/* Opens a file. A pipe is copied first, so that log_text_rewind can go back. `path` must outlive
 * `text`. Returns 0 or a negative code; log_text_close must be called in both cases. */
int log_text_open(struct log_text *text, const char *path, struct ifl_error *error);
void log_text_close(struct log_text *text);
void log_text_rewind(struct log_text *text);

/* Reads the next line. Returns 1 if there is one, 0 at the end of the file, or a negative code.
 * Lines end with a line feed, or with carriage returns if the file has no line feeds. Bytes of 0
 * are skipped, except those of UTF-16 and of compressed files and those within a number. These, and
 * a line of more than 1 MiB, are errors, since such a file is no log. */
int log_text_next(struct log_text *text, struct ifl_error *error);

/* Reads the line after this one without consuming it. Returns as log_text_next. */
int log_text_peek(struct log_text *text, struct ifl_error *error);

/* Appends the next line to this one. Returns false if together they are too long. */
bool log_text_join(struct log_text *text);

/* True if the text begins as a server's loggers begin a line: with a process, a level or a time. */
bool log_text_is_record(const char *line);

#endif
