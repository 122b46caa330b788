/* The parameters that identification estimates: numbers of a deployment that no document gives.
 *
 * A parameter is a row of the table. Its value is absolute: it replaces the value of the
 * configuration or the hardware profile. */
#ifndef SIM_IDENTIFY_PARAMETERS_H
#define SIM_IDENTIFY_PARAMETERS_H

#include <stdbool.h>
#include <stddef.h>

#include "config/config.h"
#include "run/machine.h"

/* If two parameters act alike, the one that comes first here is kept. */
enum parameter {
    HOST_STEP,
    HOST_SEQ,
    FRONT_REQUEST,
    FRONT_PROMPT_TOKEN,
    BLOCKS,
    ALLREDUCE_RATE,
    EXCHANGE_RATE,     /* between the data-parallel ranks around experts */
    HOST_LAYER,        /* acts as HOST_STEP in every step of one model */
    ALLREDUCE_LATENCY, /* acts as HOST_STEP, too */
    CACHE_HIT,         /* share of each prompt */
    PROMPT_FRAC,       /* of the profile's time for steps with prompts */
    N_PARAMETERS
};

/* The transform of a parameter in which a fit moves. */
enum moved {
    ITSELF,
    LOGARITHM,
    INVERSE /* of a rate: times are linear in its inverse, however wrong the rate is */
};

struct parameter_row {
    const char *key;  /* path below `deployment` */
    const char *unit; /* of the printed value */
    double shown;     /* the printed value is the value times this */
    enum moved moved;
    bool is_whole;    /* a count */
    double low, high; /* least and most value that mean anything */
    bool is_asked;    /* estimated only on request: no recording needs it */
};

extern const struct parameter_row parameter_rows[N_PARAMETERS];

/* Returns the value after `moved` of it has grown by `by`. An inverse stays above 0. */
double parameter_moved(enum parameter parameter, double value, double by);
/* Returns the distance between two values in terms of `moved`. */
double parameter_distance(enum parameter parameter, double from, double to);

/* The parameter of that key, or -1. */
int parameter_find(const char *key);

/* The key of the parameter that acts in the same way in every step of one model, so that no run can
 * tell them apart; NULL: there is none. */
const char *parameter_acts_as(enum parameter parameter);

/* Fills `value` from the machine and the configuration; n_blocks is the counted size of the pool.
 */
void parameters_of(const struct machine *machine, const struct config *config, int32_t n_blocks,
                   double value[N_PARAMETERS]);
/* Sets all values except that of BLOCKS in the machine. A front end below 0, which a search may
 * try, counts as none. The profile's all-reduces stay unless the values differ. */
void parameters_change(const double value[N_PARAMETERS], const struct config *config,
                       struct machine *machine);
/* The field of a deployment that a parameter stands in, as "section.field". */
const char *parameter_field(enum parameter parameter, const struct deployment *deployment);

#endif
