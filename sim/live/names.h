/* Names and their numbers, in the order in which they were first seen. */
#ifndef SIM_LIVE_NAMES_H
#define SIM_LIVE_NAMES_H

#include <jansson.h>
#include <stdint.h>

struct names {
    json_t *number_of; /* name: number */
    char **of;         /* [n], of cap */
    uint32_t n, cap, most;
};

/* names_open: creates a table of at most so many names, or of any number. Returns 0 or IFL_E_NOMEM.
 */
enum { NAMES_ANY = INT32_MAX };
int names_open(struct names *names, uint32_t most);
void names_close(struct names *names); /* zeroed memory is valid */
/* Finds the number of the name, which is added if it is new. Returns a negative code if there are
 * too many names, or if memory is short. */
int names_number(struct names *names, const char *name, uint32_t *number);
static inline const char *names_text(const struct names *names, uint32_t number)
{
    return number < names->n ? names->of[number] : "";
}

#endif
