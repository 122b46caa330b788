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
    char name[48]; /* of a server_flag, or one of those that log.c lists */
    char *value;
    struct place at;
    bool forced; /* a log line says what the server took in place of what it was asked for */
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
    char *what;       /* as it was found */
    const char *key;  /* it maps to; NULL: none */
    const char *says; /* why it is not modelled, or what an assumption rests on; NULL: nothing */
    const char *name; /* of the flag that it is of; NULL: of none */
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

/* All but void ones return 0 or a negative code. */

/* The log or command line is one of this server. Another one before it is an error. */
int facts_set_server(struct facts *facts, enum server server, struct place at,
                     struct ifl_error *error);

/* A fact. Another value that is said for the same name is an error at `at`, unless one is forced.
 */
int facts_say(struct facts *facts, const char *name, const char *value, struct place at,
              bool forced, struct ifl_error *error);
/* A fact that may be said several times, with several values. */
int facts_also(struct facts *facts, const char *name, const char *value, struct place at,
               struct ifl_error *error);
/* The same in place of what was said before by the same kind of line. */
int facts_replace(struct facts *facts, const char *name, const char *value, struct place at,
                  struct ifl_error *error);
/* Takes back the facts of these names that lines of a file said; their findings become harmless,
 * with the reason. Names may be NULL. */
void facts_forget(struct facts *facts, const char *const *names, size_t n, const char *file,
                  const char *says);
/* The fact of that name, NULL if none: the forced one where there is one. */
const struct fact *facts_get(const struct facts *facts, const char *name);
/* Its value, NULL if it is not said. */
const char *facts_text(const struct facts *facts, const char *name);
/* The fact that names the model: vLLM's argument is called model, SGLang's model_path. */
const char *facts_model_name(const struct facts *facts);
bool facts_true(const struct facts *facts, const char *name, bool dflt);

/* An argument with its value, from a command line or a list of arguments in a log: a fact where the
 * table maps it, and a finding. `written` is how it was found. A value of None says nothing. With
 * `forced` it is what the server took, whatever it was asked for. */
int facts_argument(struct facts *facts, const struct server_flag *flag, const char *value,
                   const char *written, struct place at, bool forced, struct ifl_error *error);

/* `what` is copied, `key` and `says` are borrowed. */
int facts_find(struct facts *facts, enum finding_kind kind, struct place at, const char *what,
               const char *key, const char *says, struct ifl_error *error);

/* The same of the flag, or the line, of that name, which is borrowed; NULL: of none. */
int facts_find_of(struct facts *facts, const char *name, enum finding_kind kind, struct place at,
                  const char *what, const char *key, const char *says, struct ifl_error *error);

/* What has become of the flags of that name: all that was found of them becomes a finding of that
 * kind. `key` and `says` are borrowed. False: nothing was found of them. */
bool facts_decide(struct facts *facts, const char *name, enum finding_kind kind, const char *key,
                  const char *says);

/* An error at a place: with the file and the line, or without for the command line. */
IFL_PRINTF(3, 4)
int facts_fail(struct place at, struct ifl_error *error, const char *format, ...);

/* A count as servers take it: "8192", "8,192", "8k" (8000), "8K" (8192), at most MOST_COUNT, so
 * that a product of two is a long long. False: it is none. */
enum { MOST_COUNT = 1 << 30 };
bool count_read(const char *text, long long *count);

#endif
