/* Sizes and lengths in the names of checkpoints: "7b1", "560m", "8x7B"; "32K", "1M". */
#ifndef SIM_IMPORT_NAME_WORDS_H
#define SIM_IMPORT_NAME_WORDS_H

#include <stdbool.h>

struct name_word {
    const char *at;     /* in the name */
    bool is_len;        /* else it is a size */
    double params_b;    /* billions of parameters; "8x7B" is 56, "7b1" is 7.1 */
    double thousands;   /* of tokens, as written: "1M" is 1000 */
    long long n_tokens; /* exactly: "32K" is 32768, "262k" 262144; 0: the word does not tell */
};

/* Finds the first such word at or after `at`, which points into `name`. Returns false if there is
 * none. Numbers of active parameters ("A3B") do not count. */
bool name_word_next(const char *name, const char *at, struct name_word *word);

#endif
