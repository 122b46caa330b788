/* Structs and functions that study.c (reads a study) and study_write.c (writes it) share. */
#ifndef SIM_CONFIG_STUDY_PARTS_H
#define SIM_CONFIG_STUDY_PARTS_H

#include "base/tree.h"
#include "config/config.h"
#include "config/placement.h"

struct known_preset {
    const char *kind; /* borrowed */
    char *name;       /* owned */
    struct node *root;
};

struct study {
    char path[512];
    struct node *user;         /* the file with the edits, without the sweep */
    struct node *sweep;        /* NULL: one combination */
    struct node *touched;      /* keys that maps of the sweep set; or NULL */
    struct node *replications; /* their numbers, as texts */
    struct known_preset *presets;
    size_t n_presets;
    struct config first;
    bool has_first;
    struct study_traits any; /* traits of its points */
    size_t n_points;
    struct placement *placement; /* NULL: the sweep is the file's own */
};

/* ---- study.c, for placement.c ---- */

/* Loads the presets that the file and the sweep name and that are not known yet. */
int study_learn_presets(struct study *study, struct ifl_error *error);
/* The configuration of that replication from the file's layers, with pools. */
int study_read_layers(const struct study *study, const struct node *upper, size_t replication,
                      struct config *config, struct ifl_error *error);

static inline size_t study_n_swept(const struct study *study)
{
    return study->sweep ? study->sweep->n : 0;
}

#endif
