/*
 * world.h - one seed's run: a store that lives, dies and lives on from what was left.
 *
 * A life is one trace of the disk: openings, batches, checkpoints in their middle, closings and
 * faults. What was acknowledged when is noted as points of that trace. Afterwards images of it are
 * judged.
 */
#ifndef IDEM_TEST_POWER_WORLD_H
#define IDEM_TEST_POWER_WORLD_H

#include "power/book.h"
#include "power/disk.h"
#include "power/image.h"
#include "power/work.h"

#define WORLD_OPENINGS_MAX 128

/* What a run has done; in memory that outlives its process. */
struct world_counts {
    uint64_t runs;
    uint64_t lives;
    uint64_t openings;
    uint64_t batches;
    uint64_t commands;
    uint64_t flushes; /* The sync points. */
    uint64_t writes;
    uint64_t passes; /* Checkpoints in the middle of a batch, or around it. */
    uint64_t images; /* Opened and judged; the same files are judged once. */
    uint64_t same;   /* Not opened again. */
    uint64_t before; /* Found in the state before the batch that was under way, */
    uint64_t after;  /* and in the one after it. */
    uint64_t reruns; /* A batch that was under way, run again on an image. */
    uint64_t retries;
    uint64_t recoveries; /* Openings of an image of which images were made in turn. */
    uint64_t faults[DISK_FAULT_FLUSH + 1]; /* That came. */
    uint64_t told_unknown;                 /* Batches that a fault made UNKNOWN or DOWN. */
    uint64_t refused;                      /* Openings that a fault refused. */
};

/* When a batch was the store's, as points of the trace. */
struct world_moment {
    size_t submitted;
    size_t acknowledged; /* SIZE_MAX: not in this life. */
};

struct world_opening {
    size_t point;
    int64_t incarnation;
};

struct world {
    uint64_t seed;
    struct random random;
    struct world_counts *counts;
    struct fixture live;
    struct fixture image;
    struct fixture inner; /* What was left of the opening of an image. */
    struct book book;
    struct work work;
    unsigned life;
    enum disk_fault fault; /* Of this life; */
    bool fault_came;       /* what is refused now is its doing. */
    char place[192];       /* Which image, for a failure; */
    size_t point;          /* of which point. */

    struct disk_trace trace;
    size_t batches_at_start;
    int64_t incarnation_at_start; /* The newest that was acknowledged before this life. */
    struct world_moment moments[BOOK_BATCHES_MAX]; /* By batch. */
    int64_t clock_us[BOOK_BATCHES_MAX];            /* Likewise. */
    struct world_opening openings[WORLD_OPENINGS_MAX];
    size_t opening_count;

    /* What was under way when the last life ended. */
    struct call *pending;
    size_t pending_deeds[WORK_BATCH_MAX];
    size_t pending_count;

    struct call *calls;
    size_t deeds[WORK_BATCH_MAX];
    uint64_t *seen; /* Digests of images of this life. */
    size_t seen_count;
};

/* Of memory that is zero. */
void world_init(struct world *world, uint64_t seed, struct world_counts *counts);
void world_deinit(struct world *world);

/* Says what is wrong, and where, and ends the process. */
_Noreturn void world_lost(const struct world *world, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Of one life. */
struct world_plan {
    unsigned batches;
    enum disk_fault fault;
    unsigned fault_at;     /* Once, at this write or flush of the life; 0: here and there. */
    unsigned flushes;      /* So many in a hundred are judged, twice each. */
    unsigned other_points; /* That are judged besides. */
};

/* life.c: one life on what lies in the live directory. */
void world_live(struct world *world, const struct world_plan *plan);

/* judge.c: images of the last life. */
void world_judge(struct world *world, const struct world_plan *plan);

/* judge.c: the live directory becomes what was left at one of its points. */
void world_power_off(struct world *world);

#endif /* IDEM_TEST_POWER_WORLD_H */
