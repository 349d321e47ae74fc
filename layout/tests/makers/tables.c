/*
 * Makes a data directory of small tables with the WiredTiger library it is linked with (Debian's is
 * 3.2.1, of the line of MongoDB 4.2), each with its own history; `tables.py` for that release.
 *
 *     tables DIRECTORY SEED EXTENSIONS [TABLE...]
 *
 * EXTENSIONS are the compressors' libraries, separated by commas.
 */

#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <wiredtiger.h>

#define COLLECTION                                                                             \
    "key_format=q,value_format=u,allocation_size=4KB,internal_page_max=4KB,leaf_page_max=32KB," \
    "leaf_value_max=64MB,memory_page_max=10m,split_pct=90"
#define INDEX                                                                                    \
    "value_format=u,allocation_size=4KB,internal_page_max=16KB,leaf_page_max=16KB,"               \
    "prefix_compression=true"

enum { ROWS = 12000, ROW_BYTES = 1000, THREADS = 8, NOISE_BYTES = 1 << 20 };

static WT_CONNECTION *connection;
static WT_SESSION *session;
static const char *directory;
static const char *connection_config;
/* Somebody still reads the time before a truncation. */
static WT_SESSION *pinned;
static unsigned char noise[NOISE_BYTES];
static uint64_t random_state;

static void check(int error, const char *what) {
    if (error == 0)
        return;
    fprintf(stderr, "%s: %s\n", what, wiredtiger_strerror(error));
    exit(1);
}
#define CHECK(call) check((call), #call)

/* splitmix64 */
static uint64_t next_random(uint64_t *state) {
    uint64_t z = (*state += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

static uint64_t below(uint64_t limit) { return next_random(&random_state) % limit; }

static void open_database(void) {
    CHECK(wiredtiger_open(directory, NULL, connection_config, &connection));
    CHECK(connection->open_session(connection, NULL, NULL, &session));
}

static void reopen(void) {
    CHECK(connection->close(connection, NULL));
    open_database();
}

static const char *uri(const char *name) {
    static __thread char text[80];
    snprintf(text, sizeof text, "table:%s", name);
    return text;
}

static WT_CURSOR *cursor_on(WT_SESSION *by, const char *name, const char *config) {
    WT_CURSOR *cursor;
    CHECK(by->open_cursor(by, uri(name), NULL, config, &cursor));
    return cursor;
}

static void create(const char *name, const char *page_config, const char *more) {
    char config[512];
    snprintf(config, sizeof config, "%s,%s", page_config, more);
    CHECK(session->create(session, uri(name), config));
}

/* The row under the key that was set; half noise, half zeros: compressors have something to do. */
static void put(WT_CURSOR *cursor, size_t size, uint64_t seed) {
    static __thread unsigned char bytes[64 << 10];
    memset(bytes, 0, size);
    memcpy(bytes, noise + next_random(&seed) % (NOISE_BYTES - size), size / 2);
    WT_ITEM value = {.data = bytes, .size = size};
    cursor->set_value(cursor, &value);
    CHECK(cursor->insert(cursor));
}

static void put_row(WT_CURSOR *cursor, int64_t key) {
    cursor->set_key(cursor, key);
    put(cursor, ROW_BYTES, (uint64_t)key);
}

static void fill(WT_SESSION *by, const char *name, int64_t first, int64_t end) {
    WT_CURSOR *cursor = cursor_on(by, name, NULL);
    for (int64_t key = first; key < end; key++)
        put_row(cursor, key);
    CHECK(cursor->close(cursor));
}

static void checkpoint(void) { CHECK(session->checkpoint(session, NULL)); }

struct part {
    const char *name;
    int64_t index;
    int64_t *shared_key;
};

static void *one_range(void *argument) {
    struct part *part = argument;
    WT_SESSION *own;
    CHECK(connection->open_session(connection, NULL, NULL, &own));
    fill(own, part->name, part->index * ROWS / THREADS, (part->index + 1) * ROWS / THREADS);
    CHECK(own->close(own, NULL));
    return NULL;
}

static void *from_one_queue(void *argument) {
    struct part *part = argument;
    WT_SESSION *own;
    CHECK(connection->open_session(connection, NULL, NULL, &own));
    WT_CURSOR *cursor = cursor_on(own, part->name, NULL);
    int64_t key;
    while ((key = __atomic_fetch_add(part->shared_key, 1, __ATOMIC_RELAXED)) < ROWS)
        put_row(cursor, key);
    CHECK(own->close(own, NULL));
    return NULL;
}

static void in_threads(const char *name, void *(*work)(void *)) {
    pthread_t threads[THREADS];
    struct part parts[THREADS];
    int64_t shared_key = 0;
    for (int i = 0; i < THREADS; i++) {
        parts[i] = (struct part){name, i, &shared_key};
        check(pthread_create(&threads[i], NULL, work, &parts[i]), "pthread_create");
    }
    for (int i = 0; i < THREADS; i++)
        check(pthread_join(threads[i], NULL), "pthread_join");
}

static void append_with(const char *name, const char *more) {
    create(name, COLLECTION, more);
    fill(session, name, 0, ROWS);
}

static void append(const char *name) { append_with(name, ""); }

/* 2 GiB, for benchmarks. */
static void large(const char *name) {
    create(name, COLLECTION, "");
    fill(session, name, 0, 2 << 20);
}

static void append_8_threads(const char *name) {
    create(name, COLLECTION, "");
    in_threads(name, from_one_queue);
}

static void ranges_8_threads(const char *name) {
    create(name, COLLECTION, "");
    in_threads(name, one_range);
}

static void hashed(const char *name) {
    create(name, COLLECTION, "");
    WT_CURSOR *cursor = cursor_on(session, name, NULL);
    for (int i = 0; i < ROWS; i++)
        put_row(cursor, (int64_t)(next_random(&random_state) >> 2));
    CHECK(cursor->close(cursor));
}

static void update_rows(const char *name, int rows) {
    checkpoint();
    WT_CURSOR *cursor = cursor_on(session, name, NULL);
    for (int i = 0; i < rows; i++) {
        cursor->set_key(cursor, (int64_t)below(ROWS));
        put(cursor, ROW_BYTES, below(UINT64_MAX));
    }
    CHECK(cursor->close(cursor));
}

static void updated_0_4_percent(const char *name) {
    append(name);
    update_rows(name, ROWS / 250);
}

static void updated_4_percent(const char *name) {
    append(name);
    update_rows(name, ROWS / 25);
}

static void remove_row(WT_CURSOR *cursor, int64_t key) {
    cursor->set_key(cursor, key);
    int error = cursor->remove(cursor);
    if (error != WT_NOTFOUND)
        check(error, "remove");
}

static void deleted_random(const char *name) {
    append(name);
    checkpoint();
    WT_CURSOR *cursor = cursor_on(session, name, NULL);
    for (int i = 0; i < ROWS / 3; i++)
        remove_row(cursor, (int64_t)below(ROWS));
    CHECK(cursor->close(cursor));
}

/* Ranges go, then new rows come into the holes. */
static void deleted_ranges(const char *name) {
    append(name);
    checkpoint();
    WT_CURSOR *cursor = cursor_on(session, name, NULL);
    for (int64_t key = 0; key < ROWS; key++)
        if (key % 2000 < 700)
            remove_row(cursor, key);
    CHECK(cursor->close(cursor));
    checkpoint();
    fill(session, name, ROWS, ROWS + 2000);
}

static void truncate_range(const char *name, int64_t first, int64_t last) {
    WT_CURSOR *start = cursor_on(session, name, NULL), *stop = cursor_on(session, name, NULL);
    start->set_key(start, first);
    stop->set_key(stop, last);
    CHECK(session->truncate(session, NULL, start, stop, NULL));
    CHECK(start->close(start));
    CHECK(stop->close(stop));
}

static void truncated_for_good(const char *name) {
    append(name);
    reopen();
    truncate_range(name, 3000, 7000);
}

/*
 * Leaves that were never read are removed by a mark on their address. The mark stays on disk while
 * somebody may still read the time before, so this reader stays until the process ends.
 */
static void truncated(const char *name) {
    append(name);
    reopen();
    CHECK(connection->open_session(connection, NULL, NULL, &pinned));
    CHECK(pinned->begin_transaction(pinned, "isolation=snapshot"));
    WT_CURSOR *cursor = cursor_on(pinned, name, NULL);
    CHECK(cursor->next(cursor));
    for (int64_t first = 1000; first < ROWS; first += 4000)
        truncate_range(name, first, first + 1500);
    WT_CURSOR *statistics;
    CHECK(session->open_cursor(session, "statistics:", NULL, NULL, &statistics));
    statistics->set_key(statistics, WT_STAT_CONN_REC_PAGE_DELETE_FAST);
    CHECK(statistics->search(statistics));
    const char *description, *text;
    int64_t marked;
    CHECK(statistics->get_value(statistics, &description, &text, &marked));
    printf("%s: %d leaves marked as deleted\n", name, (int)marked);
    CHECK(statistics->close(statistics));
}

static void compacted(const char *name) {
    append(name);
    checkpoint();
    WT_CURSOR *cursor = cursor_on(session, name, NULL);
    for (int64_t key = 0; key < ROWS * 3 / 4; key++)
        if (key % 5 > 1)
            remove_row(cursor, key);
    CHECK(cursor->close(cursor));
    checkpoint();
    CHECK(session->compact(session, uri(name), NULL));
}

static void overflow_values(const char *name) {
    create(name, COLLECTION, "leaf_value_max=2KB");
    WT_CURSOR *cursor = cursor_on(session, name, NULL);
    for (int64_t key = 0; key < 3000; key++) {
        cursor->set_key(cursor, key);
        put(cursor, key % 10 == 0 ? 20000 : 500, (uint64_t)key);
    }
    CHECK(cursor->close(cursor));
}

/* Internal pages that point to keys elsewhere; releases from 5.0 on do not write them. */
static void overflow_keys(const char *name) {
    create(name, INDEX, "key_format=u,internal_key_max=100,leaf_key_max=300,prefix_compression=false");
    WT_CURSOR *cursor = cursor_on(session, name, NULL);
    unsigned char bytes[600];
    for (int i = 0; i < 4000; i++) {
        /* They differ late, so that no short key can part two pages. */
        memset(bytes, 'k', sizeof bytes);
        snprintf((char *)bytes + 400, 20, "%09d", i);
        WT_ITEM key = {.data = bytes, .size = i % 3 == 0 ? sizeof bytes : 420};
        cursor->set_key(cursor, &key);
        put(cursor, 100, (uint64_t)i);
    }
    CHECK(cursor->close(cursor));
}

static void bulk(const char *name) {
    create(name, COLLECTION, "");
    WT_CURSOR *cursor = cursor_on(session, name, "bulk");
    for (int64_t key = 0; key < ROWS; key++)
        put_row(cursor, key);
    CHECK(cursor->close(cursor));
}

static void empty(const char *name) { create(name, COLLECTION, ""); }

static void one_leaf(const char *name) {
    create(name, COLLECTION, "");
    fill(session, name, 0, 5);
}

static void text_keys(const char *name) {
    create(name, INDEX, "key_format=S");
    WT_CURSOR *cursor = cursor_on(session, name, NULL);
    for (int i = 0; i < 20000; i++) {
        char key[40];
        snprintf(key, sizeof key, "customer/%07d/orders", (int)below(10000000));
        cursor->set_key(cursor, key);
        put(cursor, 60, (uint64_t)i);
    }
    CHECK(cursor->close(cursor));
}

/* Long keys at random places: internal pages become larger than one unit of allocation. */
static void index_with(const char *name, const char *more) {
    char config[100];
    snprintf(config, sizeof config, "key_format=u,%s", more);
    create(name, INDEX, config);
    WT_CURSOR *cursor = cursor_on(session, name, NULL);
    unsigned char bytes[150];
    memcpy(bytes, noise, sizeof bytes);
    for (int i = 0; i < 20000; i++) {
        for (int at = 90; at < 146; at += 8) {
            uint64_t some = next_random(&random_state);
            memcpy(bytes + at, &some, sizeof some > 150u - at ? 150u - at : sizeof some);
        }
        WT_ITEM key = {.data = bytes, .size = sizeof bytes};
        cursor->set_key(cursor, &key);
        put(cursor, 8, (uint64_t)i);
    }
    CHECK(cursor->close(cursor));
}

static void plain_index(const char *name) { index_with(name, ""); }

static void snappy_append(const char *name) { append_with(name, "block_compressor=snappy"); }
static void snappy_index(const char *name) { index_with(name, "block_compressor=snappy"); }
static void snappy_updated(const char *name) {
    snappy_append(name);
    update_rows(name, ROWS / 250);
}

static void zlib_append(const char *name) { append_with(name, "block_compressor=zlib"); }
static void zlib_index(const char *name) { index_with(name, "block_compressor=zlib"); }
static void zlib_updated(const char *name) {
    zlib_append(name);
    update_rows(name, ROWS / 250);
}

#define TABLE(name) {#name, name}
static const struct {
    const char *name;
    void (*make)(const char *name);
} tables[] = {
    TABLE(append), TABLE(append_8_threads), TABLE(ranges_8_threads), TABLE(hashed), TABLE(large),
    TABLE(updated_0_4_percent), TABLE(updated_4_percent), TABLE(deleted_random),
    TABLE(deleted_ranges), TABLE(truncated_for_good), TABLE(compacted), TABLE(overflow_values),
    TABLE(overflow_keys), TABLE(bulk), TABLE(empty), TABLE(one_leaf), TABLE(text_keys),
    {"index", plain_index}, TABLE(snappy_append), TABLE(snappy_updated), TABLE(snappy_index),
    TABLE(zlib_append), TABLE(zlib_updated), TABLE(zlib_index),
    /* Last: its reader would keep alive what the others removed. */
    TABLE(truncated),
};

/* Without a list, all but the large one. */
static int wanted(const char *name, int names, char **list) {
    for (int i = 0; i < names; i++)
        if (strcmp(list[i], name) == 0)
            return 1;
    return names == 0 && strcmp(name, "large") != 0;
}

int main(int arguments, char **argument) {
    if (arguments < 4) {
        fprintf(stderr, "tables DIRECTORY SEED EXTENSIONS [TABLE...]\n");
        return 2;
    }
    directory = argument[1];
    random_state = strtoull(argument[2], NULL, 10);
    for (size_t at = 0; at < NOISE_BYTES; at += sizeof random_state) {
        uint64_t some = next_random(&random_state);
        memcpy(noise + at, &some, sizeof some);
    }
    char config[512];
    snprintf(config, sizeof config,
        "create,cache_size=24MB,eviction=(threads_min=4,threads_max=4),"
        "statistics=(fast),extensions=[%s]", argument[3]);
    connection_config = config;
    open_database();
    puts(wiredtiger_version(NULL, NULL, NULL));
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++)
        if (wanted(tables[i].name, arguments - 4, argument + 4))
            tables[i].make(tables[i].name);
    checkpoint();
    fflush(stdout);
    if (pinned != NULL)
        /* A close would write the tables once more, without the reader. */
        _exit(0);
    CHECK(connection->close(connection, NULL));
    return 0;
}
