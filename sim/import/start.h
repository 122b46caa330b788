/* Where a server starts in a command or a script. */
#ifndef SIM_IMPORT_START_H
#define SIM_IMPORT_START_H

#include "base/server_flags.h"
#include "import/words.h"

struct program {
    const char *part;
    const char *next; /* the word behind it; NULL: any */
    enum server server;
    const char *backend; /* NULL: what its flag says */
};

struct start {
    const struct program *program; /* NULL: nowhere */
    size_t at, end;                /* its word, and the first one behind its command */
};

/* Finds the command that starts a server. A second one is an error, unless it starts the same
 * server on a further node (--headless, --node-rank 1). */
int start_find(const struct words *words, struct start *start, struct ifl_error *error);

/* The word with the command that a shell is started with, as in bash -lc "vllm serve ..."; 0: none.
 */
size_t start_inner(const struct words *words);

/* True if the command, or the one that its shell is started with, starts one server or several. */
bool start_is_in(const char *command);

/* Where the command that begins at a word ends, if it starts a server on a node behind the first
 * and ends before `limit`, the number of a word; else `begin`. */
size_t start_skip_node(const struct words *words, size_t begin, size_t limit);

/* True if the command, or that of its shell, starts a server on a node behind the first. */
bool start_is_further(const char *command);

/* True if the part of a path or an image's name behind the last slash, up to a tag, is `part`. */
bool start_names(const char *word, const char *part);

#endif
