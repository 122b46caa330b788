/* The file of a model or a profile, and its name. */
#ifndef SIM_COST_DOCUMENT_H
#define SIM_COST_DOCUMENT_H

#include "inflight/error.h"

struct document {
    char path[512];
    char stem[128]; /* the file's name without folder and extension */
};

/* Returns the bytes of the path's folder, with its last '/'; 0 for a path without one. */
int document_folder_bytes(const char *path);

/* Finds the file; `kind` and `name` are as for data_resolve. */
int document_find(const char *kind, const char *name, struct document *document,
                  struct ifl_error *error);

#endif
