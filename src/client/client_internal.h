/*
 * client_internal.h - what the files of the client share. The contract is idem/client.h.
 *
 *   life.c     a client's beginning and end
 *   client.c   its loop and its lists: perform, reap, stop
 *   submit.c   runs begin
 *   request.c  what a caller may ask for, and the record it becomes
 *   handle.c   intents: from a request, from the journal, under a new key
 *   run.c      one run: sends, questions, pauses, its end
 *   verdict.c  what a run has shown, in words
 *
 * Each intent that runs is on exactly one list of its client:
 *
 *     submit --> READY --slot--> BUSY --answer--> READY | PAUSING | ENDED
 *                  ^                                        |
 *                  +------------- time ---------------------+
 *     ENDED --journal--> FINISHED --reap--> none
 */
#ifndef IDEM_CLIENT_CLIENT_INTERNAL_H
#define IDEM_CLIENT_CLIENT_INTERNAL_H

#include <sys/types.h>
#include <uv.h>

#include "base/attr.h"
#include "base/clock.h"
#include "base/list.h"
#include "base/random.h"
#include "base/text.h"
#include "base/uid.h"
#include "client/course.h"
#include "client/dialect.h"
#include "client/fail.h"
#include "client/inquiry.h"
#include "client/journal.h"
#include "client/meaning.h"
#include "client/moment.h"
#include "client/pace.h"
#include "idem/client.h"
#include "transport/client.h"

#define IDEM_CLIENT_HEAD_SIZE   16384
#define IDEM_CLIENT_CREDENTIAL  2048 /* Bytes of its header line. */
#define IDEM_CLIENT_MESSAGE_MAX 768
#define IDEM_CLIENT_LINES_SIZE  1024 /* Of the lines that the client adds itself. */
#define IDEM_CLIENT_LAST_MAX    160

enum idem_client_place {
    IDEM_PLACE_NONE = 0,
    IDEM_PLACE_READY, /* It wants a slot. */
    IDEM_PLACE_BUSY,
    IDEM_PLACE_PAUSING,
    IDEM_PLACE_ENDED,    /* The journal does not have its verdict yet. */
    IDEM_PLACE_FINISHED, /* To be reaped. */
    IDEM_PLACE_COUNT
};

/* One request at a time. */
struct idem_client_slot {
    struct idem_list_node node; /* On `idle`. */
    struct idem_http_call call;
    struct idem_client_intent *intent; /* NULL: idle. */
    enum idem_inquiry_way way;         /* NONE: a send. */
    char *answer_room;                 /* answer_max bytes; made at first use. */
    char head_room[IDEM_CLIENT_HEAD_SIZE];
    char url[IDEM_CLIENT_URL_MAX + 256];
    char lines[IDEM_CLIENT_LINES_SIZE];
};

/* The server's last answer. */
struct idem_client_answer {
    uint16_t status;
    char *memory; /* Headers, a terminator, body. NULL: neither. */
    struct idem_str headers;
    struct idem_str body;
};

struct idem_client_intent {
    struct idem_list_node node; /* On the client's list of its place. */
    struct idem_list_node kin;  /* On the client's list of all. */
    struct idem_client *client;
    const struct idem_dialect *dialect;
    struct idem_client_record record;
    struct idem_client_record before; /* As it was when its run began. Borrows record's memory. */
    char name[IDEM_CLIENT_NAME_MAX + 1];
    char key[256];
    char new_key[64];                        /* That a renewed record borrows. */
    char credential[IDEM_CLIENT_CREDENTIAL]; /* Empty: none. Wiped on release. */
    bool same_account;                       /* The caller says so of a credential that is new. */

    enum idem_client_place place;
    struct idem_client_slot *slot; /* While BUSY. */
    struct idem_course course;
    struct idem_move move; /* What is next, while READY, BUSY or PAUSING. */
    int64_t due_us;        /* While PAUSING. Monotonic, as all times of a run. */
    int64_t deadline_us;
    int64_t window_us;     /* INT64_MIN: nobody can say. */
    int64_t first_sent_us; /* Wall time; of the first send that may have had an effect. */
    bool stopping;         /* Its call was cancelled; what comes of it is the last of this run. */
    bool listed;           /* Twice in one submit. */
    bool note_due;         /* The journal does not have its operation_url yet. */
    unsigned sends;
    unsigned asks;
    const char *why; /* What the last answer was; constant. */
    bool look_first; /* The last answer says so: at what is there, before another try. */
    char last[IDEM_CLIENT_LAST_MAX];

    struct idem_client_answer answer;
    char status_url[IDEM_CLIENT_URL_MAX + 1];
    char operation_url[IDEM_CLIENT_URL_MAX + 1]; /* Empty: not told. */
    char key_url[IDEM_CLIENT_URL_MAX + 1];       /* Where its key is asked for; empty: nowhere. */
    char message[IDEM_CLIENT_MESSAGE_MAX];
    struct idem_client_verdict verdict;
};

struct idem_client {
    struct idem_client_options options; /* With the defaults filled in; texts are copies. */
    struct idem_client_journal *journal;
    uv_loop_t loop;
    bool loop_open;
    uv_timer_t due;  /* The next pause or deadline that ends. */
    uv_timer_t wait; /* Of one perform. */
    struct idem_http_client *http;
    struct idem_clock *clock;
    struct idem_random *random;
    pid_t owner; /* The process that opened it. */
    char boot[IDEM_BOOT_ID_LEN + 1];
    bool waited;        /* The time of one perform is over. */
    bool proxy_is_near; /* There is none, or it is on this machine. */
    size_t notes_due;   /* Intents with note_due. */
    struct idem_clock clock_memory;
    struct idem_random random_memory;
    struct idem_budget budget;
    struct idem_client_slot *slots;
    struct idem_list idle;
    struct idem_list places[IDEM_PLACE_COUNT];
    struct idem_list intents; /* All handles. */
};

/* As idem_client_open(), with another clock and other dice; NULL: the system's. */
enum idem_client_err idem_client_open_with(const struct idem_client_options *options,
                                           struct idem_clock *clock,
                                           struct idem_random *random,
                                           struct idem_client **ret_client,
                                           struct idem_client_error *reterr);

/* Now, with a calendar that is read anew; in tests the clock that was given. */
struct idem_moment idem_client_now(struct idem_client *client);

/*
 * False in a child that was forked after the client was opened: journal, locks and random numbers
 * belong to the parent. idem_client_foreign() is what such a call fails with.
 */
bool idem_client_is_own(const struct idem_client *client);
enum idem_client_err idem_client_foreign(struct idem_client_error *reterr);

/* How many have been submitted and not yet reaped. */
size_t idem_client_running(const struct idem_client *client);

/* The loop wakes up for what is due next: after every change from outside. */
void idem_client_arm(struct idem_client *client);

/* Its operation_url is to be written down, or has been. */
void idem_client_note_due(struct idem_client_intent *intent);
void idem_client_note_done(struct idem_client_intent *intent);

/* True if an intent of that name is under way in this client. */
bool idem_client_runs(const struct idem_client *client, struct idem_str name);

/* Moves an intent to another place, at its end. */
void idem_client_place(struct idem_client_intent *intent, enum idem_client_place place);

/* run.c */

/* A run begins: its record is durable, the doubt that was there before is `doubt`. */
void idem_run_begin(struct idem_client_intent *intent, bool doubt);

/* READY, and there is an idle slot: sends or asks. */
void idem_run_go(struct idem_client_intent *intent, struct idem_client_slot *slot);

/* BUSY, and its call was reaped. The slot is idle afterwards. */
void idem_run_answered(struct idem_client_intent *intent);

/* PAUSING and due, or its deadline is over. */
void idem_run_wake(struct idem_client_intent *intent);

/* Ends at once, without doubt if nothing was sent. Not for BUSY ones. */
void idem_run_cut(struct idem_client_intent *intent, enum idem_client_reason reason);

/* When idem_run_wake() is due: the end of its pause or of its run. */
int64_t idem_run_due_us(const struct idem_client_intent *intent);

/* verdict.c */

/* Fills the verdict from the record; `recorded` says whether the journal has it. */
void idem_verdict_from_record(struct idem_client_intent *intent, bool recorded);

/*
 * When a run that ends now has ended, in microseconds of wall time: never before its beginning, nor
 * before the latest time that the journal has, since the calendar may be behind for a moment, and
 * what is forgotten by its age would be forgotten too early.
 */
int64_t idem_verdict_end_us(struct idem_client *client, const struct idem_client_record *record);

/* Puts the end of a run into the record: verdict, message, answer. */
void idem_verdict_settle(struct idem_client_intent *intent, const struct idem_move *move);

/* Replaces the answer by copies. False: there was no memory, and there is no answer. */
bool idem_answer_keep(struct idem_client_answer *answer,
                      uint16_t status,
                      struct idem_str headers,
                      struct idem_str body);
void idem_answer_clear(struct idem_client_answer *answer);

#endif /* IDEM_CLIENT_CLIENT_INTERNAL_H */
