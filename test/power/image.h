/*
 * image.h - what a loss of power leaves.
 *
 * At any point of a trace: everything that was flushed, and of the rest whatever the seed says.
 * Operations are whole, missing, torn at sectors or in the middle, there without an earlier one;
 * a file may have grown without its data, and sectors that were being written hold anything. What
 * was not being written is never harmed: SQLite asks that of a disk (SQLITE_IOCAP_POWERSAFE_
 * OVERWRITE), and so do we.
 */
#ifndef IDEM_TEST_POWER_IMAGE_H
#define IDEM_TEST_POWER_IMAGE_H

#include "power/disk.h"

/* What becomes of the operations on one file that were not flushed. */
enum image_way {
    IMAGE_NONE,    /* Nothing of it. */
    IMAGE_ALL,     /* Everything: the process died, and not the machine. */
    IMAGE_SOME,    /* Each for itself, some of them torn. */
    IMAGE_FIRST,   /* Up to one of them, which is torn. */
    IMAGE_LAST,    /* Only the last. */
    IMAGE_HOLE,    /* All but one. */
    IMAGE_SECTORS, /* Each sector for itself. */
    IMAGE_SIZE,    /* The size, and no data. */
    IMAGE_GARBAGE, /* All, and anything in some of the sectors. */
    IMAGE_WAY_COUNT
};

/* What a disk writes at once. */
#define IMAGE_SECTOR_SMALL 512
#define IMAGE_SECTOR_LARGE 4096

struct image_choice {
    size_t point;
    uint64_t seed;
    enum image_way way; /* Of every file; COUNT: each file has one of its own, by the seed. */
};

/* Writes the files into a directory that has none of them. Gives a digest of their content. */
uint64_t image_write(const struct disk_trace *trace,
                     const struct image_choice *choice,
                     const char *directory);

/* Removes them, and what the store has made beside them. */
void image_remove(const char *directory);

/* For people: what was not flushed at a point, and the operations just before it. */
void image_tell(const struct disk_trace *trace, size_t point);

const char *image_way_name(enum image_way way);

#endif /* IDEM_TEST_POWER_IMAGE_H */
