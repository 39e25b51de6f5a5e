/*
 * client_verdict.h - how calls fail, how runs of intents end, how they stand; part of client.h.
 */
#ifndef IDEM_CLIENT_VERDICT_H
#define IDEM_CLIENT_VERDICT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Limits; beyond them IDEM_CLIENT_E_INVALID. */
#define IDEM_CLIENT_NAME_MAX    200 /* Bytes of UTF-8 without control characters. */
#define IDEM_CLIENT_HEADERS_MAX 32
#define IDEM_CLIENT_HEADER_SIZE 8192     /* All header lines together, bytes. */
#define IDEM_CLIENT_URL_MAX     2048     /* Bytes. */
#define IDEM_CLIENT_BODY_MAX    16777216 /* Bytes. */
#define IDEM_CLIENT_RUNS_MAX    8192     /* Submitted and not yet reaped, in one client. */

/* What went wrong with a call of this interface. It is never a statement about money. */
enum idem_client_err {
    IDEM_CLIENT_OK = 0,
    IDEM_CLIENT_E_INVALID,  /* An argument cannot be used. */
    IDEM_CLIENT_E_MISMATCH, /* The name belongs to another request, which stays what it is. */
    IDEM_CLIENT_E_UNKNOWN,  /* There is no intent of that name. */
    IDEM_CLIENT_E_BUSY,     /* The intent is being run, by this or by another process. */
    IDEM_CLIENT_E_REFUSED,  /* Its verdict does not allow this. */
    IDEM_CLIENT_E_JOURNAL,  /* The journal cannot be read or written; nothing was sent. */
    IDEM_CLIENT_E_LIMIT,    /* A limit is reached; later it may work. */
    IDEM_CLIENT_E_SYSTEM    /* The operating system refused: memory, descriptors. */
};

/* A sentence for a person; terminated. Written when a call fails, untouched otherwise. */
struct idem_client_error {
    char text[512];
};

enum idem_client_outcome {
    IDEM_CLIENT_NO_OUTCOME = 0, /* It has not been run. */
    IDEM_CLIENT_DONE,
    IDEM_CLIENT_REFUSED,
    IDEM_CLIENT_UNKNOWN
};

/* Why a run ended as it did. */
enum idem_client_reason {
    IDEM_CLIENT_REASON_NONE = 0,
    IDEM_CLIENT_ANSWERED, /* The server's final answer: see status and body. */
    IDEM_CLIENT_NOT_SENT, /* Not one byte left within the deadline. */
    IDEM_CLIENT_DEADLINE, /* The deadline ended. */
    IDEM_CLIENT_BUDGET,   /* No more repeats were allowed by retry_percent. */
    IDEM_CLIENT_WINDOW,   /* The server may have forgotten the key, or nobody can say. */
    IDEM_CLIENT_ADVISED,  /* The server's answer says that repeating does not help. */
    IDEM_CLIENT_STOPPED,  /* idem_client_stop(). */
    IDEM_CLIENT_DECIDED   /* By a person: idem_client_decide(). */
};

struct idem_client_verdict {
    enum idem_client_outcome outcome;
    enum idem_client_reason reason;
    const char *message; /* What happened to the money and what to do next; terminated. */
    bool renewable;      /* idem_client_renew() would be allowed. */
    bool over;           /* Running it again would only show the same verdict again. */
    bool replayed;       /* The server says that its answer is that of an earlier request. */
    bool recorded;       /* The journal has this verdict. If not, it will be found out again. */
    /*
     * Where to look at what has become of it: the Location of a 202 of its server, else what the
     * request brought, else where the dialect asks by key, with the key in its header; also before
     * it is run. "": nowhere, or at more than IDEM_CLIENT_URL_MAX bytes.
     */
    const char *status_url;
    /* The server's last answer, final or not; status 0: there was none. */
    uint16_t status;
    const char *headers; /* "Name: value\n" each; terminated. */
    const void *body;
    size_t body_size;
    int64_t key_expires_ms; /* Since 1970, by this machine's clock; 0: the server has not said. */
    /* In this run. */
    unsigned sends;
    unsigned asks;
};

/* How a run stands, for progress. */
enum idem_client_phase {
    IDEM_CLIENT_RESTING = 0, /* It does not run. */
    IDEM_CLIENT_QUEUED,      /* calls_max requests are under way. */
    IDEM_CLIENT_SENDING,
    IDEM_CLIENT_ASKING,
    IDEM_CLIENT_PAUSING /* Until the next send or question. */
};

struct idem_client_progress {
    enum idem_client_phase phase;
    unsigned sends;
    unsigned asks;
    int64_t pause_ms;     /* Left of a pause. */
    int64_t remaining_ms; /* Of the deadline. */
    const char *last;     /* What the last try met: "503", "connection refused"; "" at first. */
};

/* One intent of the journal, as a list shows it. Texts as long as the entry. */
struct idem_client_entry {
    char name[IDEM_CLIENT_NAME_MAX + 1];
    char key[256];
    char method[8];
    char url[IDEM_CLIENT_URL_MAX + 1];
    char status_url[IDEM_CLIENT_URL_MAX + 1]; /* As of the verdict. */
    enum idem_client_outcome outcome;         /* Of its last run; NO_OUTCOME: it never ended. */
    enum idem_client_reason reason;
    bool over;
    uint16_t status;
    int64_t created_ms; /* Since 1970. */
    /* Of the last run, and never before what the journal had then; 0: none has ended. */
    int64_t ended_ms;
    int64_t position;
};

#endif /* IDEM_CLIENT_VERDICT_H */
