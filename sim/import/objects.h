/* Objects that arguments of a server are: JSON, or what Python prints of one. */
#ifndef SIM_IMPORT_OBJECTS_H
#define SIM_IMPORT_OBJECTS_H

#include <jansson.h>

#include "import/facts.h"

/* Reads an object from {"a": 1}, {'a': 1} or Name(a=1). Returns a new reference; NULL if the text
 * is no object. */
json_t *object_read(const char *text);

/* Merges the objects of all facts of that name; the first value counts. Returns a new reference;
 * NULL if there is none, or none is an object. */
json_t *object_of(const struct facts *facts, const char *name);

/* "--flag.a.b 1" is --flag '{"a": {"b": 1}}': replaces the value by the text of that object. */
void object_nest(const char *path, char *value, size_t n_bytes);

/* A member as text, NULL if it is none or null. */
const char *object_text(const json_t *object, const char *name);
/* Returns a member as a number, also from quotes; `dflt` if it is none, or has 16 digits or more.
 */
double object_number(const json_t *object, const char *name, double dflt);
/* Returns a member as a count; `dflt` if it is none, or more than MOST_COUNT. */
long long object_count(const json_t *object, const char *name, long long dflt);

#endif
