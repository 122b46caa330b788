/* The portrait of a model as files: model.csv, batches.csv and the roofline figure with its data.
 */
#ifndef SIM_CLI_MODEL_FILES_H
#define SIM_CLI_MODEL_FILES_H

#include "cost/portrait.h"

int model_files_write(const struct portrait *portrait, const char *dir, struct ifl_error *error);

#endif
