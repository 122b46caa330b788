/* Did you mean ...? What a word that is none of some candidates was meant to be. */
#ifndef INFLIGHT_NEAREST_H
#define INFLIGHT_NEAREST_H

#include <stdbool.h>
#include <stddef.h>

/* The candidate nearest to `word`: by edit distance, or the first that goes on where the word ends.
 * NULL if none is near. */
const char *ifl_nearest(const char *word, const char *const *candidates, size_t n);

/* The same for names of things that come in families, such as llama-2-7b or vllm-v1: those with the
 * word's letters and digits, whatever their case and hyphens; else all of whose parts it is the
 * first ("vllm"); else those one or two slips away; else all that begin with it; else all that
 * begin with its own first parts ("sarathi" of "sarathi-serve", "vllm" of "vllm1"); else the
 * nearest by edit distance. `near` holds up to `cap` of them in the candidates' order; returns how
 * many there are, which may be more. */
size_t ifl_nearest_names(const char *word, const char *const *candidates, size_t n,
                         const char **near, size_t cap);

#endif
