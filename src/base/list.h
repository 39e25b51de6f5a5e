/*
 * list.h - an intrusive doubly linked list.
 *
 * The node is a member of the struct that is listed; the list owns nothing. A node is on one list
 * at a time and knows it: `linked` is asserted on both ways. A list belongs to one thread.
 */
#ifndef IDEM_BASE_LIST_H
#define IDEM_BASE_LIST_H

#include <stdbool.h>
#include <stddef.h>

struct idem_list_node {
    struct idem_list_node *prev;
    struct idem_list_node *next;
    bool linked;
};

struct idem_list {
    struct idem_list_node *first;
    struct idem_list_node *last;
    size_t count;
};

void idem_list_push(struct idem_list *list, struct idem_list_node *node);
void idem_list_push_front(struct idem_list *list, struct idem_list_node *node);
/* Puts `node` behind `before`, which is on the list; NULL: at the front. */
void idem_list_insert_after(struct idem_list *list,
                            struct idem_list_node *before,
                            struct idem_list_node *node);
void idem_list_remove(struct idem_list *list, struct idem_list_node *node);

/* Takes the first node off, or returns NULL. */
struct idem_list_node *idem_list_pop(struct idem_list *list);

/* Moves everything from `from` to the end of `to`, in order. */
void idem_list_join(struct idem_list *to, struct idem_list *from);

/* Walks a list that the body does not change. */
/* NOLINTBEGIN(bugprone-macro-parentheses): `node` names the variable, it is not a value. */
#define IDEM_LIST_FOREACH(node, list) \
    for (struct idem_list_node *node = (list)->first; node != NULL; node = node->next)
/* NOLINTEND(bugprone-macro-parentheses) */

#endif /* IDEM_BASE_LIST_H */
