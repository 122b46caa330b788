/* What the files of a study share: study.c reads it, study_write.c writes it. */
#ifndef SIM_CONFIG_STUDY_PARTS_H
#define SIM_CONFIG_STUDY_PARTS_H

#include "base/tree.h"
#include "config/config.h"

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
    struct node *replications; /* their numbers as texts */
    struct known_preset *presets;
    size_t n_presets;
    struct config first;
    bool has_first;
    struct study_traits any; /* of its points */
    size_t n_points;
};

static inline size_t study_n_swept(const struct study *study)
{
    return study->sweep ? study->sweep->n : 0;
}

#endif
