/*
 * The images behind image.h: the trace up to a point is played again onto what was there when it
 * began. What is durable is played whole, the rest as its file's way says. Nothing is played out of
 * its order: what a disk writes later than asked is seen here as not written yet.
 */
#include "power/image.h"

#include <unistd.h>

#include "lib/test.h"
#include "power/random.h"

#define TOLD_MAX  24
#define NAMES_MAX 16

/* A file as it is found. */
struct content {
    uint8_t *bytes;
    size_t size;
    size_t max;
};

/* How one file's operations are played. */
struct player {
    const struct disk_trace *trace;
    size_t point;
    size_t inode;
    struct random random;
    enum image_way way;
    size_t sector;
    size_t pending_count;
    size_t pending_at; /* Which of them comes next. */
    size_t chosen;     /* FIRST: it is torn. HOLE: it is missing. */
    struct content content;
};

static void must(bool good)
{
    if (!good) {
        (void)fprintf(stderr, "power: the test's own files cannot be written\n");
        abort();
    }
}

static void content_resize(struct content *content, size_t size)
{
    if (size > content->max) {
        content->max = 2 * size;
        content->bytes = realloc(content->bytes, content->max);
        must(content->bytes != NULL);
    }
    if (size > content->size) {
        memset(content->bytes + content->size, 0, size - content->size);
    }
    content->size = size;
}

static void content_grow(struct content *content, size_t size)
{
    if (size > content->size) {
        content_resize(content, size);
    }
}

static void piece_put(struct content *content, const struct disk_op *op, size_t from, size_t to)
{
    if (from < to) {
        content_grow(content, op->offset + to);
        memcpy(content->bytes + op->offset + from, op->bytes + from, to - from);
    }
}

static void op_put(struct content *content, const struct disk_op *op)
{
    if (op->kind == DISK_CUT) {
        content_resize(content, op->offset);
    } else {
        piece_put(content, op, 0, op->size);
    }
}

/* The end of the sector that the byte at `from` of the write stands in; at most its own end. */
static size_t sector_end(const struct player *player, const struct disk_op *op, size_t from)
{
    size_t at = op->offset + from;
    size_t end = (at / player->sector + 1) * player->sector - op->offset;
    return end < op->size ? end : op->size;
}

/* Up to a sector, or to any byte. */
static void op_tear(struct player *player, const struct disk_op *op)
{
    if (op->kind == DISK_CUT) {
        return;
    }
    size_t to = random_below(&player->random, op->size + 1);
    if (random_percent(&player->random, 50)) {
        to = sector_end(player, op, to < op->size ? to : op->size - 1);
    }
    piece_put(&player->content, op, 0, to);
}

static void op_put_sectors(struct player *player, const struct disk_op *op)
{
    for (size_t from = 0; op->kind == DISK_WRITE && from < op->size;) {
        size_t to = sector_end(player, op, from);
        if (random_percent(&player->random, 50)) {
            piece_put(&player->content, op, from, to);
        }
        from = to;
    }
}

static void garbage_put(struct player *player, size_t from, size_t to)
{
    for (size_t i = from; i < to; i++) {
        player->content.bytes[i] = (uint8_t)random_next(&player->random);
    }
}

static void op_put_garbage(struct player *player, const struct disk_op *op)
{
    op_put(&player->content, op);
    for (size_t from = 0; op->kind == DISK_WRITE && from < op->size;) {
        size_t to = sector_end(player, op, from);
        if (random_percent(&player->random, 30)) {
            garbage_put(player, op->offset + from, op->offset + to);
        }
        from = to;
    }
}

static void op_put_some(struct player *player, const struct disk_op *op)
{
    uint64_t roll = random_below(&player->random, 100);
    if (roll < 45) {
        op_put(&player->content, op);
    } else if (roll < 65) {
        op_tear(player, op);
    }
}

static void op_put_first(struct player *player, const struct disk_op *op, size_t at)
{
    if (at < player->chosen) {
        op_put(&player->content, op);
    } else if (at == player->chosen) {
        op_tear(player, op);
    }
}

static void op_put_pending(struct player *player, const struct disk_op *op)
{
    size_t at = player->pending_at;
    player->pending_at += 1;
    switch (player->way) {
    case IMAGE_ALL:
        op_put(&player->content, op);
        return;
    case IMAGE_SOME:
        op_put_some(player, op);
        return;
    case IMAGE_FIRST:
        op_put_first(player, op, at);
        return;
    case IMAGE_LAST:
        if (at + 1 == player->pending_count) {
            op_put(&player->content, op);
        }
        return;
    case IMAGE_HOLE:
        if (at != player->chosen) {
            op_put(&player->content, op);
        }
        return;
    case IMAGE_SECTORS:
        op_put_sectors(player, op);
        return;
    case IMAGE_SIZE:
        if (op->kind == DISK_WRITE) {
            content_grow(&player->content, op->offset + op->size);
        }
        return;
    case IMAGE_GARBAGE:
        op_put_garbage(player, op);
        return;
    case IMAGE_NONE:
    case IMAGE_WAY_COUNT:
        return;
    }
}

static bool is_of(const struct player *player, size_t i)
{
    const struct disk_op *op = &player->trace->ops[i];
    return op->inode == player->inode && (op->kind == DISK_WRITE || op->kind == DISK_CUT);
}

static bool is_durable(const struct player *player, size_t i)
{
    return player->trace->ops[i].durable_at < player->point;
}

static void content_play(struct player *player)
{
    const struct disk_inode *inode = &player->trace->inodes[player->inode];
    content_resize(&player->content, inode->size);
    if (inode->size > 0) {
        memcpy(player->content.bytes, inode->bytes, inode->size);
    }
    for (size_t i = 0; i < player->point; i++) {
        player->pending_count += is_of(player, i) && !is_durable(player, i) ? 1 : 0;
    }
    player->chosen = random_below(&player->random, player->pending_count);
    for (size_t i = 0; i < player->point; i++) {
        if (!is_of(player, i)) {
            continue;
        }
        if (is_durable(player, i)) {
            op_put(&player->content, &player->trace->ops[i]);
        } else {
            op_put_pending(player, &player->trace->ops[i]);
        }
    }
}

static uint64_t digest_add(uint64_t digest, const void *bytes, size_t size)
{
    const uint8_t *at = bytes;
    for (size_t i = 0; i < size; i++) {
        digest = (digest ^ at[i]) * UINT64_C(0x100000001b3);
    }
    return digest ^ (digest >> 29);
}

static void file_write(const char *directory, const char *name, const void *bytes, size_t size)
{
    char path[192];
    (void)snprintf(path, sizeof(path), "%s/%s", directory, name);
    FILE *stream = fopen(path, "wb");
    must(stream != NULL);
    must(size == 0 || fwrite(bytes, 1, size, stream) == size);
    must(fclose(stream) == 0);
}

/* A name, and what it stands for; SIZE_MAX: nothing. */
struct entry {
    char name[DISK_NAME_MAX];
    size_t inode;
};

struct names {
    struct entry entries[NAMES_MAX];
    size_t count;
};

static struct entry *entry_of(struct names *names, const char *name)
{
    for (size_t i = 0; i < names->count; i++) {
        if (strcmp(names->entries[i].name, name) == 0) {
            return &names->entries[i];
        }
    }
    must(names->count < NAMES_MAX);
    struct entry *entry = &names->entries[names->count];
    (void)snprintf(entry->name, sizeof(entry->name), "%s", name);
    entry->inode = SIZE_MAX;
    names->count += 1;
    return entry;
}

static void name_op_play(struct names *names, const struct disk_op *op)
{
    for (size_t i = 0; i < names->count && op->kind == DISK_RENAME; i++) {
        if (names->entries[i].inode == op->inode) {
            names->entries[i].inode = SIZE_MAX;
        }
    }
    entry_of(names, op->name)->inode = op->kind == DISK_REMOVE ? SIZE_MAX : op->inode;
}

/* Of a making, removal or renaming that was not flushed nobody knows whether it was done. */
static void names_play(struct names *names,
                       const struct disk_trace *trace,
                       const struct image_choice *choice,
                       struct random *random)
{
    *names = (struct names){ .count = 0 };
    for (size_t i = 0; i < trace->inode_count; i++) {
        if (trace->inodes[i].at_start) {
            entry_of(names, trace->inodes[i].first_name)->inode = i;
        }
    }
    for (size_t i = 0; i < choice->point; i++) {
        const struct disk_op *op = &trace->ops[i];
        if (op->kind != DISK_MAKE && op->kind != DISK_REMOVE && op->kind != DISK_RENAME) {
            continue;
        }
        bool done = op->durable_at < choice->point || choice->way == IMAGE_ALL ||
                    (choice->way != IMAGE_NONE && random_percent(random, 50));
        if (done) {
            name_op_play(names, op);
        }
    }
}

/* What SQLite must not believe: it is made anew by whoever opens first. */
static void shm_write(struct random *random, const char *directory)
{
    uint8_t bytes[32768];
    if (random_percent(random, 40)) {
        return;
    }
    bool zeros = random_percent(random, 20);
    for (size_t i = 0; i < sizeof(bytes); i++) {
        bytes[i] = zeros ? 0 : (uint8_t)random_next(random);
    }
    file_write(directory, "store.db-shm", bytes, random_below(random, sizeof(bytes) + 1));
}

uint64_t image_write(const struct disk_trace *trace,
                     const struct image_choice *choice,
                     const char *directory)
{
    struct random random = { .state = choice->seed };
    uint64_t digest = UINT64_C(0xcbf29ce484222325);
    struct names names;
    names_play(&names, trace, choice, &random);
    for (size_t i = 0; i < names.count; i++) {
        const struct entry *entry = &names.entries[i];
        struct player player = {
            .trace = trace,
            .point = choice->point,
            .inode = entry->inode,
            .random = { .state = random_next(&random) },
            .way = choice->way,
        };
        bool large = random_percent(&player.random, 50);
        player.sector = large ? IMAGE_SECTOR_LARGE : IMAGE_SECTOR_SMALL;
        if (choice->way == IMAGE_WAY_COUNT) {
            player.way = (enum image_way)random_below(&player.random, IMAGE_WAY_COUNT);
        }
        if (entry->inode == SIZE_MAX) {
            continue;
        }
        content_play(&player);
        file_write(directory, entry->name, player.content.bytes, player.content.size);
        digest = digest_add(digest, entry->name, strlen(entry->name));
        digest = digest_add(digest, player.content.bytes, player.content.size);
        free(player.content.bytes);
    }
    shm_write(&random, directory);
    return digest;
}

void image_remove(const char *directory)
{
    static const char *const names[] = { "store.db",     "store.db-wal",  "store.db-journal",
                                         "store.db-shm", "store.db.lock", "store.db-wal.new" };
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        char path[192];
        (void)snprintf(path, sizeof(path), "%s/%s", directory, names[i]);
        (void)unlink(path); /* It may not be there. */
    }
}

void image_tell(const struct disk_trace *trace, size_t point)
{
    static const char *const names[] = {
        [DISK_WRITE] = "write",
        [DISK_CUT] = "cut",
        [DISK_MAKE] = "make",
        [DISK_REMOVE] = "remove",
        [DISK_RENAME] = "rename",
        [DISK_FLUSH] = "flush",
        [DISK_FLUSH_FAILED] = "flush that fails",
        [DISK_FLUSH_DIRECTORY] = "flush of the directory",
    };
    for (size_t i = 0; i < point && i < trace->op_count; i++) {
        const struct disk_op *op = &trace->ops[i];
        bool flush = op->kind >= DISK_FLUSH;
        bool durable = flush || op->durable_at < point;
        if (durable && i + TOLD_MAX < point) {
            continue;
        }
        (void)fprintf(stderr, "  %6zu %-22s %-16s %zu at %llu%s\n", i, names[op->kind],
                      op->name[0] != '\0' ? op->name : trace->inodes[op->inode].first_name,
                      op->size, (unsigned long long)op->offset, durable ? "" : "  (not flushed)");
    }
}

const char *image_way_name(enum image_way way)
{
    static const char *const names[IMAGE_WAY_COUNT + 1] = {
        [IMAGE_NONE] = "nothing",    [IMAGE_ALL] = "all",   [IMAGE_SOME] = "some",
        [IMAGE_FIRST] = "first",     [IMAGE_LAST] = "last", [IMAGE_HOLE] = "hole",
        [IMAGE_SECTORS] = "sectors", [IMAGE_SIZE] = "size", [IMAGE_GARBAGE] = "garbage",
        [IMAGE_WAY_COUNT] = "mixed",
    };
    return names[way];
}
