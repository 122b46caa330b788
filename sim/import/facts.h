/* The contents of a server's log and command line: facts, by the name of the server's argument, and
 * findings for the report, one for each flag and each line. */
#ifndef SIM_IMPORT_FACTS_H
#define SIM_IMPORT_FACTS_H

#include <stdbool.h>
#include <stddef.h>

#include "inflight/error.h"

#include "base/server_flags.h"

struct place {
    const char *file; /* NULL: the command line; else borrowed */
    long line;        /* 1-based */
};

struct fact {
    char name[48]; /* name of a server_flag, or one of those that log.h lists */
    char *value;
    struct place at;
    bool forced; /* a log line gives the value that the server used in place of the requested one */
};

enum finding_kind {
    FOUND_MAPS,
    FOUND_ASSUMED, /* a default of the server that neither log nor command line says */
    FOUND_HARMLESS,
    FOUND_UNMODELLED,
    FOUND_UNKNOWN,
    FOUND_UNREAD /* lines of a log that say nothing that is known */
};

struct finding {
    enum finding_kind kind;
    struct place at;
    char *what;       /* the text as it was found */
    const char *key;  /* key that it maps to; NULL: none */
    const char *says; /* why it is not modelled, or what an assumption rests on; NULL: nothing */
    const char *name; /* name of the flag that the finding is about; NULL: no flag */
};

struct facts {
    enum server server;
    bool has_server;
    struct place server_at; /* where the server was recognised */
    struct fact *of;
    size_t n, cap;
    struct finding *findings;
    size_t n_findings, cap_findings;
};

void facts_free(struct facts *facts);

/* Functions with an int result return 0 or a negative code. */

/* Notes that the log or command line is that of this server. If another server was noted before,
 * that is an error. */
int facts_set_server(struct facts *facts, enum server server, struct place at,
                     struct ifl_error *error);

/* Adds a fact. A different value for the same name is an error at `at`, unless one of the two is
 * forced. */
int facts_say(struct facts *facts, const char *name, const char *value, struct place at,
              bool forced, struct ifl_error *error);
/* Adds a fact that may have several values. */
int facts_also(struct facts *facts, const char *name, const char *value, struct place at,
               struct ifl_error *error);
/* As facts_say, replacing the value from an earlier line of the same kind. */
int facts_replace(struct facts *facts, const char *name, const char *value, struct place at,
                  struct ifl_error *error);
/* Removes the facts of these names that come from lines of a file; their findings become harmless,
 * with the reason `says`. Names may be NULL. */
void facts_forget(struct facts *facts, const char *const *names, size_t n, const char *file,
                  const char *says);
/* Returns the fact of that name, the forced one if there is one; NULL if there is none. */
const struct fact *facts_get(const struct facts *facts, const char *name);
/* Returns the value of the fact, or NULL if there is none. */
const char *facts_text(const struct facts *facts, const char *name);
/* Returns the name of the fact about the model: vLLM's argument is called model, SGLang's
 * model_path. */
const char *facts_model_name(const struct facts *facts);
/* Returns the fact with the name of the checkpoint: that of --model, if it names one, else that of
 * the server's argument; NULL if there is neither. */
const struct fact *facts_checkpoint(const struct facts *facts);
bool facts_true(const struct facts *facts, const char *name, bool dflt);

/* Adds an argument with its value, from a command line or a list of arguments in a log: a fact if
 * the table maps it, and a finding. `written` is the text as found. A value of None says nothing.
 * With `forced` it is the value that the server used, whatever was requested. */
int facts_argument(struct facts *facts, const struct server_flag *flag, const char *value,
                   const char *written, struct place at, bool forced, struct ifl_error *error);

/* `what` is copied, `key` and `says` are borrowed. */
int facts_find(struct facts *facts, enum finding_kind kind, struct place at, const char *what,
               const char *key, const char *says, struct ifl_error *error);

/* As facts_find, for the flag or the line of that name, which is borrowed; NULL: no name. */
int facts_find_of(struct facts *facts, const char *name, enum finding_kind kind, struct place at,
                  const char *what, const char *key, const char *says, struct ifl_error *error);

/* Decides about the flags of that name: all their findings become findings of that kind. `key` and
 * `says` are borrowed. Returns false if there are no findings about them. */
bool facts_decide(struct facts *facts, const char *name, enum finding_kind kind, const char *key,
                  const char *says);

/* An error at a place: with the file and the line, or without for the command line. */
IFL_PRINTF(3, 4)
int facts_fail(struct place at, struct ifl_error *error, const char *format, ...);

/* Reads a count as servers accept it: "8192", "8,192", "8k" (8000), "8K" (8192), at most
 * MOST_COUNT, so that the product of two fits into a long long. Returns false if the text is no
 * count. */
enum { MOST_COUNT = 1 << 30 };
bool count_read(const char *text, long long *count);

#endif
