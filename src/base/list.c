/*
 * The list checks both ends on every change: `linked` says whether a node is on a list, and count
 * and ends agree. Being on two lists at once is the usual mistake and is caught at the second push.
 */
#include "base/list.h"

#include "base/bug.h"

static void list_check(const struct idem_list *list)
{
    IDEM_ASSERT((list->first == NULL) == (list->count == 0));
    IDEM_ASSERT((list->last == NULL) == (list->count == 0));
}

void idem_list_push(struct idem_list *list, struct idem_list_node *node)
{
    list_check(list);
    IDEM_ASSERT(!node->linked);
    *node = (struct idem_list_node){ .prev = list->last, .linked = true };
    if (list->last == NULL) {
        list->first = node;
    } else {
        list->last->next = node;
    }
    list->last = node;
    list->count += 1;
}

void idem_list_push_front(struct idem_list *list, struct idem_list_node *node)
{
    list_check(list);
    IDEM_ASSERT(!node->linked);
    *node = (struct idem_list_node){ .next = list->first, .linked = true };
    if (list->first == NULL) {
        list->last = node;
    } else {
        list->first->prev = node;
    }
    list->first = node;
    list->count += 1;
}

void idem_list_insert_after(struct idem_list *list,
                            struct idem_list_node *before,
                            struct idem_list_node *node)
{
    if (before == NULL) {
        idem_list_push_front(list, node);
        return;
    }
    if (before->next == NULL) {
        IDEM_ASSERT(list->last == before);
        idem_list_push(list, node);
        return;
    }
    list_check(list);
    IDEM_ASSERT(before->linked);
    IDEM_ASSERT(!node->linked);
    *node = (struct idem_list_node){ .prev = before, .next = before->next, .linked = true };
    before->next->prev = node;
    before->next = node;
    list->count += 1;
}

void idem_list_remove(struct idem_list *list, struct idem_list_node *node)
{
    IDEM_ASSERT(node->linked);
    IDEM_ASSERT(list->count > 0);
    if (node->prev == NULL) {
        list->first = node->next;
    } else {
        node->prev->next = node->next;
    }
    if (node->next == NULL) {
        list->last = node->prev;
    } else {
        node->next->prev = node->prev;
    }
    *node = (struct idem_list_node){ .linked = false };
    list->count -= 1;
    list_check(list);
}

struct idem_list_node *idem_list_pop(struct idem_list *list)
{
    struct idem_list_node *node = list->first;
    if (node != NULL) {
        idem_list_remove(list, node);
    }
    return node;
}

void idem_list_join(struct idem_list *to, struct idem_list *from)
{
    list_check(to);
    list_check(from);
    if (from->first == NULL) {
        return;
    }
    if (to->last == NULL) {
        *to = *from;
    } else {
        to->last->next = from->first;
        from->first->prev = to->last;
        to->last = from->last;
        to->count += from->count;
    }
    *from = (struct idem_list){ .count = 0 };
}
