/* OUT_DIR/.parts: the files of a study's finished points, until all points are done.
 *
 * A point's files are written there under names that end in its number. The record comes last,
 * under a temporary name and then its own, so a point with a record is complete even if a process
 * was killed. A record has
 *   - the hash of its study, so that records of other studies are recognised;
 *   - checksums of the point's inputs;
 *   - a checksum of its own. */
#ifndef SIM_CLI_PARTS_H
#define SIM_CLI_PARTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "inflight/error.h"
#include "inflight/report.h"

#include "cli/inputs.h"

struct parts {
    char dir[528];
    uint64_t study_hash;
    size_t record_bytes;
};

/* The directory is made by parts_make; out_dir has at most 511 characters. */
void parts_init(struct parts *parts, const char *out_dir, uint64_t study_hash, size_t record_bytes);
bool parts_exist(const struct parts *parts);
int parts_make(const struct parts *parts, struct ifl_error *error);
/* Removes the directory and what is in it, if it is there. */
void parts_remove(const struct parts *parts);
/* Negative if a file in the directory was read as an input (inflight/inputs.h). */
int parts_check(const struct parts *parts, struct ifl_error *error);
/* After an error: removes the directory if there is nothing to resume, that is, with a single point
 * or no record. Otherwise it stays, and the text of an interruption names --resume. */
void parts_salvage(const struct parts *parts, size_t n_points, struct ifl_error *error);

/* OUT_DIR/.parts/NAME-000012 */
void parts_path(const struct parts *parts, const char *name, size_t point,
                char path[IFL_PATH_BYTES]);
int parts_put(const struct parts *parts, size_t point, const struct input_sums *inputs,
              const void *record, struct ifl_error *error);
/* False if this study has no record of the point. */
bool parts_get(const struct parts *parts, size_t point, void *record);
void parts_drop(const struct parts *parts, size_t point); /* the record alone */

enum parts_find { PARTS_NONE, PARTS_FOREIGN, PARTS_DAMAGED, PARTS_OURS };
/* Looks for the point's record. PARTS_FOREIGN: it is of another study; PARTS_OURS: `inputs` and
 * `record` are filled in. */
enum parts_find parts_look(const struct parts *parts, size_t point, struct input_sums *inputs,
                           void *record);

#endif
