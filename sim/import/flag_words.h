/* Flags of a server as the keys of a YAML map: words of a command line. */
#ifndef SIM_IMPORT_FLAG_WORDS_H
#define SIM_IMPORT_FLAG_WORDS_H

#include <jansson.h>
#include <stdio.h>

#include "base/server_flags.h"
#include "base/tree.h"

/* What a plain scalar is to a YAML 1.1 loader, such as the one of these servers. */
enum yaml_truth { YAML_FALSE, YAML_TRUE, YAML_OTHER };
enum yaml_truth yaml_truth_of(const struct node *node);

/* The value as JSON; a new reference, NULL if memory is short. */
json_t *node_json(const struct node *node);

/* Writes "--key=value" with the value of a key, quoted for a shell; a list of a flag that takes
 * several words is as many words. A null is None. Returns 0 or a negative code. */
int flag_words_one(const char *key, const struct node *value, enum server server, FILE *out,
                   struct ifl_error *error);

/* Writes the words of all keys but those that are merged and replaced ("<<"). Of TensorRT-LLM the
 * members of kv_cache_config and scheduler_config are flags of their own. */
int flag_words_put(const struct node *map, enum server server, FILE *out, struct ifl_error *error);

/* The server that knows more of these keys than each other one, and every one that another knows;
 * false if there is none. */
bool flag_words_server(const struct node *map, enum server *server);
/* True if more than half of the keys are flags of several servers. */
bool flag_words_several(const struct node *map);

#endif
