/* Finds files that come with inflight by name: first in the working directory, then in the data. */
#ifndef SIM_BASE_DATA_H
#define SIM_BASE_DATA_H

#include <stdbool.h>
#include <stddef.h>

#include "inflight/error.h"

/* Finds a file that comes with inflight, such as "traces/data/NAME" or "configs/models/NAME.yaml".
 * The working directory is searched first, then the data, which is the first of these folders that
 * exists:
 *   - the source tree in which the program was built;
 *   - the data installed beside the program;
 *   - the data at the place that the build was configured with.
 *
 * INFLIGHT_DATA in the environment, if set, replaces all three. Returns a negative value if the
 * file is in neither. */
int data_path(const char *relative, char found[512]);
/* The folder of the scripts that draw figures. */
int data_plot_scripts(char found[512], struct ifl_error *error);

/* Fills the sorted names that data_resolve knows: of the configurations with kind "configs", of the
 * shipped traces with "traces". No name at all is an error; its message says which folders were
 * searched. */
struct name_list {
    char **of;
    size_t n;
};
int data_names(const char *kind, struct name_list *names, struct ifl_error *error);
void name_list_free(struct name_list *names);

/* Finds the file of a name in a configuration: in the working directory's configs/, then in the
 * installed data. Writes the path into `found`. An unknown name is an error that offers the nearest
 * right one. kind is "models", "hardware", "deployments" or
 * "serving". A name with a slash or an extension is a path already. */
int data_resolve(const char *kind, const char *name, char found[512], struct ifl_error *error);
/* Finds the configuration that a command line names:
 *   - the file of that name, or of that name with ".yaml", in the working directory;
 *   - configs/NAME.yaml as data_path finds it; NAME may have the suffix, or the folder, or both.
 * A file that is nowhere is an error that offers the nearest name; what is there and no regular
 * file is found, too, for the reader to complain. */
int data_find_config(const char *name, char found[512], struct ifl_error *error);
/* True if the name is a path: it has a slash or an extension. */
bool data_is_path(const char *name);

#endif
