/*
 * The service: a store that is made, one that is opened and closed, payments of every kind, and a
 * start after a death with money in flight.
 */
#include <stdio.h>

#include "base/attr.h"
#include "torture/place.h"
#include "torture/scene.h"
#include "torture/world.h"

#define TEMPLATE "template.db"
#define IMAGE    "image.db"

static void open_or_say(void)
{
    struct idem_error error = { .text = "" };
    if (world_open(&error) != IDEM_OK) {
        torture_violation("it does not open: %s", error.text);
    }
}

static void store_remove(void)
{
    torture_file_remove("store.db");
    torture_file_remove("store.db-wal");
    torture_file_remove("store.db-shm");
}

/* A store in which two payments have their answers. */
static void template_make(void)
{
    world_init();
    store_remove();
    open_or_say();
    (void)world_ask(DEED_OLD);
    (void)world_ask(DEED_HELD);
    world_close();
    torture_file_copy("store.db", TEMPLATE);
    world_keep();
}

static void template_put(void)
{
    store_remove();
    torture_file_copy(TEMPLATE, "store.db");
    world_back();
}

/* What is on the disk while the provider has the payment and nobody has its answer. */
static void image_take(enum deed deed)
{
    if (deed == DEED_LOST) {
        torture_file_copy("store.db", IMAGE);
        torture_file_copy("store.db-wal", IMAGE "-wal");
        world_keep();
    }
}

static void image_make(void)
{
    template_make();
    open_or_say();
    world_on_send = image_take;
    (void)world_ask(DEED_LOST);
    world_on_send = NULL;
    world_close();
}

static void image_put(void)
{
    store_remove();
    torture_file_copy(IMAGE, "store.db");
    torture_file_copy(IMAGE "-wal", "store.db-wal");
    world_back();
}

static void nothing_put(void)
{
    store_remove();
    world_init();
}

static void serve_prepare(void)
{
    template_put();
    open_or_say();
}

static void all_ask(void)
{
    static const enum deed order[] = {
        DEED_OLD,   DEED_PAY,     DEED_LOST, DEED_REFUND, DEED_BAD,
        DEED_NEVER, DEED_CAPTURE, DEED_PAY,  DEED_LOST,   DEED_NEVER,
    };
    for (size_t i = 0; i < IDEM_ARRAY_COUNT(order); i++) {
        if (!world_ask(order[i])) {
            return;
        }
    }
    world_rest();
}

static void serve_play(void)
{
    all_ask();
    world_close();
}

static void killed_play(void)
{
    all_ask();
    world_die();
    world_close();
}

static void killed_judge(void)
{
    world_return();
    world_judge();
}

/* A start that is refused is one that says so; the next one is judged. */
static void open_play(void)
{
    struct idem_error error = { .text = "" };
    if (world_open(&error) == IDEM_OK) {
        world_close();
    } else if (error.text[0] == '\0') {
        torture_violation("a start fails without a word");
    }
}

static void recover_play(void)
{
    struct idem_error error = { .text = "" };
    if (world_open(&error) != IDEM_OK) {
        return;
    }
    world_rest();
    (void)world_ask(DEED_LOST);
    world_close();
}

const struct torture_scene torture_scenes_store[] = {
    { "create", template_make, nothing_put, open_play, world_judge },
    { "serve", template_make, serve_prepare, serve_play, world_judge },
    { "killed", template_make, serve_prepare, killed_play, killed_judge },
    { "recover", image_make, image_put, recover_play, world_judge },
};
const size_t torture_scenes_store_count = IDEM_ARRAY_COUNT(torture_scenes_store);
