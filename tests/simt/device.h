/* Where the kernels under test keep their memory: the host's heap on the shim, a GPU's memory when
 * the same tests are linked with nvcc's objects. */
#ifndef TESTS_SIMT_DEVICE_H
#define TESTS_SIMT_DEVICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* False, with a line on stderr, if there is no device. */
bool device_open(void);
/* n_bytes copied from init; all bits set, which is NaN in every element, when init is NULL. Lives
 * until device_free_all. */
void *device_new(size_t n_bytes, const void *init);
/* As device_new, behind n_before bytes that are never used. */
void *device_new_behind(size_t n_before, size_t n_bytes, const void *init);
/* The kernel before the next one wrote this memory: until the next waits, its contents are not
 * there (on the shim). */
void device_written(void *memory, size_t n_bytes);
/* Whether the device has so much memory. */
bool device_has(size_t n_bytes);
void device_read(void *to, const void *from, size_t n_bytes);
void device_free_all(void);
/* After a launch: waits and fails the program on an error. */
void device_check(int launch_error, const char *kernel);
/* Matrix operations of each block of the last launch, in the order in which blocks start; NULL if
 * the device does not tell. */
const uint32_t *device_products(size_t *n_blocks);
/* Makes the synchronising call number `which` do nothing. False on a real device. */
bool device_leave_out(int which);
/* Prints one line, starting with #, with statistics of the device. */
void device_report(void);

#endif
