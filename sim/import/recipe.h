/* Maps of YAML that say by keys of their own how a server is started: values of Helm charts,
 * resources of KServe, applications of Ray Serve. */
#ifndef SIM_IMPORT_RECIPE_H
#define SIM_IMPORT_RECIPE_H

#include <stdio.h>

#include "base/tree.h"

#include "import/expand.h"
#include "import/facts.h"

/* Takes the command of a server, which it frees, and the node that it is of. */
typedef int recipe_take(void *search, const struct node *of, char *command);

struct recipe {
    const struct node *map;
    const struct node *roots; /* the documents of the manifest */
    struct variables *given;  /* in front of it */
    struct facts *facts;
    struct ifl_error *error;
    recipe_take *take;
    void *search;
};

/* Reads a map of one of these kinds, with a finding for each of its keys that is no flag. *is_one
 * is false if it is of another kind; its children may be of one. */
int recipe_read(const struct recipe *r, bool *is_one);

/* ---- for the files of single kinds ---- */

/* A key of such a map: with a flag, its value is that of the flag; without one and with a kind it
 * is a finding; with neither, another function reads it. */
struct recipe_key {
    const char *name, *flag;
    int kind; /* enum finding_kind */
    const char *says;
};
enum { RECIPE_READ = -1 };
#define RECIPE_KEYS(keys) keys, sizeof(keys) / sizeof *(keys)

int recipe_find(const struct recipe *r, enum finding_kind kind, const char *path, const char *key,
                const char *says);
/* Writes the flags of a map's keys to `out`, and finds the others; `path` is in front of their
 * names, with its dot. The map may be NULL. */
int recipe_keys(const struct recipe *r, const struct node *map, const char *path,
                const struct recipe_key *keys, size_t n, enum server server, FILE *out);

/* The map of a key; NULL if there is none. Another value is an error. */
int recipe_map(const struct recipe *r, const struct node *map, const char *key,
               const struct node **inner);
/* The list of a key, all of whose items are maps; NULL if there is none. Messages call one of them
 * `item`. */
int recipe_maps(const struct recipe *r, const struct node *map, const char *key, const char *item,
                const struct node **list);
/* The text of a key; NULL if there is none. */
int recipe_text(const struct recipe *r, const struct node *map, const char *key, const char **text);
/* The checkpoint that an address names: that of hf://NAME, or `otherwise`, which may be NULL. */
const char *recipe_model(const char *address, const char *otherwise);

/* Replicas, and GPUs that a container asks for. */
int recipe_replicas(const struct recipe *r, const struct node *map, const char *key);
int recipe_resources(const struct recipe *r, const struct node *map);
/* A resource of Kubernetes, such as amd.com/gpu; NULL: none is named. */
int recipe_device(const struct recipe *r, const char *resource);

/* Variables in `environment`, `env` or `envs` of the map, in front of the command. */
int recipe_variables(const struct recipe *r, const struct node *map, FILE *out);
/* The words of a key of the map, quoted. */
int recipe_words(const struct recipe *r, const struct node *map, const char *key, FILE *out);

/* A command that is being written. Opened, it must be ended: that closes it, and hands it over
 * unless `code` is an error, which is returned. */
struct recipe_command {
    FILE *out;
    char *text; /* valid after fflush(out) */
    size_t n_bytes;
};
int recipe_open(const struct recipe *r, struct recipe_command *command);
int recipe_end(const struct recipe *r, const struct node *of, struct recipe_command *command,
               int code);

int recipe_stack(const struct recipe *r, bool *is_one); /* vLLM's production-stack */
int recipe_llm_d(const struct recipe *r, bool *is_one);
int recipe_kserve(const struct recipe *r, bool *is_one);
/* True if the map is a runtime of KServe, which a service of the same manifest says how to use. */
bool recipe_is_of_service(const struct node *map, const struct node *roots);
int recipe_llm_service(const struct recipe *r, bool *is_one);
int recipe_ray(const struct recipe *r, bool *is_one);

#endif
