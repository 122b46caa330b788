/* Objects that arguments of a server are: JSON, or what Python prints of one. */
#ifndef SIM_IMPORT_OBJECTS_H
#define SIM_IMPORT_OBJECTS_H

#include <jansson.h>

#include "import/facts.h"

/* {"a": 1}, {'a': 1} and Name(a=1) alike. A new reference; NULL: it is none. */
json_t *object_read(const char *text);

/* What all facts of that name say together, the first one first. A new reference; NULL: there is
 * none, or none is an object. */
json_t *object_of(const struct facts *facts, const char *name);

/* "--flag.a.b 1" is --flag '{"a": {"b": 1}}': replaces the value by the text of that object. */
void object_nest(const char *path, char *value, size_t n_bytes);

/* A member as text, NULL if it is none or null. */
const char *object_text(const json_t *object, const char *name);
/* As a number, also in quotes; `dflt` where it is none, or of 16 digits and more. */
double object_number(const json_t *object, const char *name, double dflt);
/* As a count; `dflt` where it is none, or more than MOST_COUNT. */
long long object_count(const json_t *object, const char *name, long long dflt);

#endif
