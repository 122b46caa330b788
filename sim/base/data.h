/* Files that come with inflight, found by name: in the working directory, then in the data. */
#ifndef SIM_BASE_DATA_H
#define SIM_BASE_DATA_H

#include <stdbool.h>
#include <stddef.h>

#include "inflight/error.h"

/* Finds a file that comes with inflight, as "traces/data/NAME" or "configs/models/NAME.yaml". It is
 * searched in the working directory, then in the data. The data is the first of these that exists:
 *   - the source tree that the program was built in;
 *   - the data installed beside the program;
 *   - the data installed where the build said.
 * INFLIGHT_DATA in the environment, if set, replaces all three. Negative if it is in neither. */
int data_path(const char *relative, char found[512]);
/* The folder of the scripts that draw figures. */
int data_plot_scripts(char found[512], struct ifl_error *error);

/* The names that data_resolve knows, with kind "configs" the configurations, with "traces" the
 * shipped traces; sorted. It is an error if there are none; the message says where they were
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
/* True for such a path. */
bool data_is_path(const char *name);

#endif
