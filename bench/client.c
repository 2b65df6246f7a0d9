/* The load client of the bench: raw bytes, no JSON parser, so that the client is not what is measured.
 *
 *   client --init FILE --lines FILE [options] -- COMMAND...        stdio: starts the server, speaks over two pipes
 *   client --http PORT --lines FILE [options] -- COMMAND...        HTTP: starts the server, keep-alive connections
 *
 *   --conc C        requests (or listings) in flight
 *   --warm-n N --warm-s S --warm-max S     warm-up: at least N answers and S seconds, at most `warm-max` seconds
 *   --n N --s S --max S                    measured: the same three bounds
 *   --walk          complete listings: lines[0] asks for the first page, lines[1] (with @CURSOR@) for the next ones
 *   --inject FILE --gap MS                 after an equal stretch without them, send these lines too, one at a time
 *   --start         only the handshake and the first answer
 *   --log FILE      where the server's stderr goes
 *
 * Every request line holds the id 100000000 once; the nine digits are patched before each write, so ids are unique.
 * Answers are matched by id wherever it stands in the object. Inside a JSON string every quote is escaped, so the
 * bytes `"id":` can only be a member name. Prints one JSON object.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { ID_BASE = 100000000, INJECT_BASE = 900000000, RING = 1 << 16, MAX_CONC = 1024, PIPE_ROOM = 60000 };

typedef struct { char *p; size_t n, id_at, cursor_at; } Line;
typedef struct { Line *v; size_t n; } Lines;
typedef struct { double *v; size_t n, room; } Samples;
typedef struct { double seconds, p50, p99, max, server_cpu, client_cpu; size_t count; long answers, errors; double bytes; } Stage;

static struct {
    const char *init, *lines, *inject, *log;
    int conc, http;
    long warm_n, n;
    double warm_s, warm_max, s, max, gap;
    bool walk, start;
} opt = {.conc = 1, .warm_max = 3, .max = 30, .gap = 20};

static pid_t server = 0;
static int to_server = -1, from_server = -1;

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + t.tv_nsec * 1e-9;
}

static void stop_server(void) {
    if (server <= 0) return;
    if (to_server >= 0) close(to_server);
    if (from_server >= 0) close(from_server);
    if (opt.http) kill(-server, SIGTERM);
    for (int i = 0; i < 300; i++) {
        if (waitpid(server, NULL, WNOHANG) == server) { kill(-server, SIGKILL); server = 0; return; }
        if (i == 100) kill(-server, SIGTERM);
        usleep(10000);
    }
    kill(-server, SIGKILL);
    waitpid(server, NULL, 0);
    server = 0;
}

static void die(const char *format, ...) {
    va_list a;
    va_start(a, format);
    fprintf(stderr, "client: ");
    vfprintf(stderr, format, a);
    fprintf(stderr, "\n");
    va_end(a);
    stop_server();
    exit(1);
}

static void on_alarm(int signal_number) {
    (void)signal_number;
    static const char text[] = "client: the run did not end in time\n";
    if (write(2, text, sizeof text - 1) < 0) {}
    if (server > 0) kill(-server, SIGKILL);
    _exit(1);
}

/* ---- small parts ------------------------------------------------------------------------------------------- */

static void keep(Samples *s, double value) {
    if (s->n == s->room) {
        s->room = s->room ? s->room * 2 : 4096;
        s->v = realloc(s->v, s->room * sizeof *s->v);
        if (!s->v) die("out of memory");
    }
    s->v[s->n++] = value;
}

static int by_value(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static double percentile(Samples *s, double p) {
    if (!s->n) return 0;
    size_t i = (size_t)(p * (double)s->n);
    return s->v[i < s->n ? i : s->n - 1];
}

/* A file of records: one a line, or (HTTP) separated by a byte 1, because a request holds line ends itself. */
static Lines load(const char *path, char separator) {
    FILE *f = fopen(path, "rb");
    if (!f) die("%s: %s", path, strerror(errno));
    fseek(f, 0, SEEK_END);
    size_t size = (size_t)ftell(f);
    rewind(f);
    char *text = malloc(size + 1);
    if (!text || fread(text, 1, size, f) != size) die("%s: cannot read", path);
    fclose(f);
    Lines out = {0};
    for (char *p = text, *end = text + size; p < end;) {
        char *stop = memchr(p, separator, (size_t)(end - p));
        if (!stop) stop = end;
        out.v = realloc(out.v, (out.n + 1) * sizeof *out.v);
        Line *line = &out.v[out.n++];
        line->n = (size_t)(stop - p) + (separator == '\n');
        line->p = malloc(line->n + 1);
        memcpy(line->p, p, (size_t)(stop - p));
        if (separator == '\n') line->p[line->n - 1] = '\n';
        line->p[line->n] = 0;
        char *id = strstr(line->p, "100000000"), *cursor = strstr(line->p, "@CURSOR@");
        line->id_at = id ? (size_t)(id - line->p) : 0;
        line->cursor_at = cursor ? (size_t)(cursor - line->p) : 0;
        p = stop + 1;
    }
    free(text);
    if (!out.n) die("%s: no requests", path);
    return out;
}

static void patch(char *digits, long id) {
    for (int i = 8; i >= 0; i--, id /= 10) digits[i] = (char)('0' + id % 10);
}

static void send_all(int fd, const char *p, size_t n) {
    while (n) {
        ssize_t k = write(fd, p, n);
        if (k < 0 && errno == EINTR) continue;
        if (k <= 0) die("cannot write to the server: %s", strerror(errno));
        p += k;
        n -= (size_t)k;
    }
}

static const char *find(const char *p, size_t n, const char *word) { return memmem(p, n, word, strlen(word)); }

/* First the two ends of an answer, where servers put their members, then all of it. */
static const char *find_near_ends(const char *p, size_t n, const char *word, size_t window) {
    if (n <= 2 * window) return find(p, n, word);
    const char *hit = find(p, window, word);
    return hit ? hit : find(p + n - window, window, word);
}

static long answer_id(const char *p, size_t n) {
    const char *q = find_near_ends(p, n, "\"id\"", 64), *end = p + n;
    if (!q) q = find(p, n, "\"id\"");
    if (!q) return -1;
    for (q += 4; q < end && (*q == ':' || *q == ' '); q++) {}
    if (q >= end || !isdigit((unsigned char)*q)) return -1;
    long id = 0;
    for (; q < end && isdigit((unsigned char)*q); q++) id = id * 10 + (*q - '0');
    return id;
}

static bool is_error(const char *p, size_t n) {
    if (find_near_ends(p, n, "\"error\":", 160)) return true;
    const char *q = find_near_ends(p, n, "\"isError\":", 160);
    return q && (q[10] == 't' || q[11] == 't');
}

/* The value of nextCursor as it stands between its quotes, or NULL (absent or null). */
static const char *next_cursor(const char *p, size_t n, size_t *length) {
    static const char word[] = "\"nextCursor\"";
    const char *q = find_near_ends(p, n, word, 1024), *end = p + n;
    if (!q) q = find(p, n, word);
    if (!q) return NULL;
    for (q += sizeof word - 1; q < end && (*q == ':' || *q == ' '); q++) {}
    if (q >= end || *q != '"') return NULL;
    const char *from = ++q;
    while (q < end && *q != '"') q += *q == '\\' ? 2 : 1;
    *length = (size_t)(q - from);
    return from;
}

/* ---- the server's process tree ----------------------------------------------------------------------------- */

typedef struct { double cpu; long peak_kb; int processes; } Tree;

static Tree tree(pid_t root) {
    static struct { pid_t pid, parent; double cpu; bool in; } seen[4096];
    int n = 0;
    double tick = (double)sysconf(_SC_CLK_TCK);
    DIR *proc = opendir("/proc");
    for (struct dirent *e; proc && n < 4096 && (e = readdir(proc));) {
        char path[300], text[1024];
        if (!isdigit((unsigned char)e->d_name[0])) continue;
        snprintf(path, sizeof path, "/proc/%s/stat", e->d_name);
        int fd = open(path, O_RDONLY);
        if (fd < 0) continue;
        ssize_t k = read(fd, text, sizeof text - 1);
        close(fd);
        if (k <= 0) continue;
        text[k] = 0;
        char *after = strrchr(text, ')');
        unsigned long user = 0, kernel = 0;
        long gone_user = 0, gone_kernel = 0;
        int parent = 0;
        if (!after || sscanf(after + 2, "%*c %d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu %ld %ld", &parent, &user,
                             &kernel, &gone_user, &gone_kernel) != 5) continue;
        seen[n].pid = (pid_t)atoi(e->d_name);
        seen[n].parent = (pid_t)parent;
        seen[n].cpu = (double)(user + kernel + (unsigned long)(gone_user + gone_kernel)) / tick;
        seen[n].in = seen[n].pid == root;
        n++;
    }
    if (proc) closedir(proc);
    for (bool grew = true; grew;) {
        grew = false;
        for (int i = 0; i < n; i++)
            for (int j = 0; !seen[i].in && j < n; j++)
                if (seen[j].in && seen[i].parent == seen[j].pid) seen[i].in = grew = true;
    }
    Tree out = {0};
    for (int i = 0; i < n; i++) {
        if (!seen[i].in) continue;
        char path[64], row[256];
        long kb = 0;
        snprintf(path, sizeof path, "/proc/%d/status", (int)seen[i].pid);
        FILE *f = fopen(path, "r");
        while (f && fgets(row, sizeof row, f)) if (sscanf(row, "VmHWM: %ld", &kb) == 1) break;
        if (f) fclose(f);
        out.cpu += seen[i].cpu;
        out.peak_kb += kb;
        out.processes++;
    }
    return out;
}

static double own_cpu(void) {
    struct rusage u;
    getrusage(RUSAGE_SELF, &u);
    return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) + (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) * 1e-6;
}

static void spawn(char **command) {
    int in[2], out[2];
    if (pipe2(in, O_CLOEXEC) || pipe2(out, O_CLOEXEC)) die("no pipes: %s", strerror(errno));
    int log = open(opt.log ? opt.log : "/dev/null", O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    server = fork();
    if (server < 0) die("cannot fork: %s", strerror(errno));
    if (server == 0) {
        setpgid(0, 0);
        dup2(in[0], 0);
        dup2(opt.http ? log : out[1], 1); /* over HTTP nobody reads the pipe */
        dup2(log, 2);
        execvp(command[0], command);
        _exit(127);
    }
    setpgid(server, server);
    close(in[0]);
    close(out[1]);
    if (log >= 0) close(log);
    to_server = in[1];
    from_server = out[0];
}

/* ---- stages: warm-up, then one or two measured stretches ---------------------------------------------------- */

static Samples samples;
static Stage stages[2];
static int stage = -1, last_stage = 0; /* -1 = warm-up, last_stage + 1 = over */
static long stage_answers = 0;
static double stage_began, cpu_began, own_began;

static void open_stage(void) {
    samples.n = 0;
    stage_answers = 0;
    cpu_began = tree(server).cpu;
    own_began = own_cpu();
    stage_began = now();
}

static void close_stage(void) {
    Stage *s = &stages[stage];
    s->seconds = now() - stage_began;
    s->client_cpu = own_cpu() - own_began;
    s->server_cpu = tree(server).cpu - cpu_began;
    s->count = samples.n;
    qsort(samples.v, samples.n, sizeof *samples.v, by_value);
    s->p50 = percentile(&samples, 0.50);
    s->p99 = percentile(&samples, 0.99);
    s->max = samples.n ? samples.v[samples.n - 1] : 0;
}

/* True when all stages are over. */
static bool turn_stage(double t) {
    double spent = t - stage_began;
    bool warm = stage < 0;
    long least = warm ? opt.warm_n : opt.n, have = warm ? stage_answers : (long)samples.n;
    if (!((have >= least && spent >= (warm ? opt.warm_s : opt.s)) || spent >= (warm ? opt.warm_max : opt.max)))
        return false;
    if (!warm) close_stage();
    stage++;
    if (stage > last_stage) return true;
    open_stage();
    return false;
}

static void note(double microseconds, size_t bytes, bool failed, bool complete) {
    stage_answers++;
    if (stage < 0) return;
    Stage *s = &stages[stage];
    s->answers++;
    s->errors += failed;
    s->bytes += (double)bytes;
    if (complete) keep(&samples, microseconds);
}

static void print_stage(const char *name, const Stage *s) {
    double n = s->count ? (double)s->count : 1;
    printf("\"%s\":{\"count\":%zu,\"answers\":%ld,\"errors\":%ld,\"seconds\":%.4f,\"rps\":%.1f,\"p50_us\":%.1f,"
           "\"p99_us\":%.1f,\"max_us\":%.1f,\"bytes\":%.1f,\"cpu_us\":%.2f,\"client_cpu_us\":%.2f}",
           name, s->count, s->answers, s->errors, s->seconds, (double)s->count / (s->seconds > 0 ? s->seconds : 1),
           s->p50, s->p99, s->max, s->bytes / n, s->server_cpu * 1e6 / n, s->client_cpu * 1e6 / n);
}

/* ---- stdio -------------------------------------------------------------------------------------------------- */

static struct { char *p; size_t begin, scanned, end, room; } in;

/* The next whole line that has already been read, or NULL. */
static char *buffered_line(size_t *n) {
    char *stop = memchr(in.p + in.scanned, '\n', in.end - in.scanned);
    if (!stop) { in.scanned = in.end; return NULL; }
    char *line = in.p + in.begin;
    *n = (size_t)(stop - line);
    in.begin = in.scanned = (size_t)(stop - in.p) + 1;
    return line;
}

static void fill(void) {
    if (in.begin == in.end) in.begin = in.scanned = in.end = 0;
    if (in.room - in.end < (1 << 18)) {
        memmove(in.p, in.p + in.begin, in.end - in.begin);
        in.end -= in.begin;
        in.scanned -= in.begin;
        in.begin = 0;
        if (in.room - in.end < (1 << 18)) {
            in.room = in.room * 2 + (1 << 20);
            in.p = realloc(in.p, in.room);
            if (!in.p) die("out of memory");
        }
    }
    ssize_t k = read(from_server, in.p + in.end, in.room - in.end - 1);
    if (k < 0 && errno == EINTR) return;
    if (k <= 0) die("the server closed its output");
    in.end += (size_t)k;
}

/* Handshake only: wait for the answer with this id. */
static char *await(long id, size_t *n) {
    for (;;) {
        char *line = buffered_line(n);
        if (!line) fill();
        else if (answer_id(line, *n) == id) return line;
    }
}

static struct { long id; double began; } client[MAX_CONC];
static int owner[RING];
static long sent = 0;
static size_t next_line = 0;
static char *scratch = NULL;

static void post(int v, Line *line, const char *cursor, size_t cursor_n) {
    long id = ID_BASE + ++sent;
    char *p = line->p;
    size_t n = line->n, id_at = line->id_at;
    if (cursor) {
        size_t head = line->cursor_at, tail = n - head - 8;
        if (n + cursor_n > PIPE_ROOM) die("a cursor of %zu bytes", cursor_n);
        memcpy(scratch, p, head);
        memcpy(scratch + head, cursor, cursor_n);
        memcpy(scratch + head + cursor_n, p + head + 8, tail);
        p = scratch;
        n = head + cursor_n + tail;
        if (id_at > head) id_at = id_at - 8 + cursor_n;
    }
    patch(p + id_at, id);
    client[v].id = id;
    owner[id & (RING - 1)] = v;
    send_all(to_server, p, n);
}

static void begin(int v, Lines *lines) {
    client[v].began = now();
    Line *line = &lines->v[opt.walk ? 0 : next_line];
    if (!opt.walk) next_line = (next_line + 1) % lines->n;
    post(v, line, NULL, 0);
}

static void print_text(const char *p, size_t n) {
    putchar('"');
    for (size_t i = 0; i < n; i++) {
        unsigned char c = (unsigned char)p[i];
        if (c == '"' || c == '\\') printf("\\%c", c);
        else if (c < 32) printf("\\u%04x", c);
        else putchar(c);
    }
    putchar('"');
}

static void run_stdio(char **command) {
    Lines lines = load(opt.lines, '\n'), init = load(opt.init, '\n'), hostile = {0};
    Samples strange = {0};
    char *sample = NULL;
    size_t longest = 0, sample_n = 0, n;
    long strays = 0, hostile_sent = 0, hostile_errors = 0, hostile_id = 0;
    double hostile_began = 0, hostile_due = 0, hostile_pending = 0;
    if (opt.inject) { hostile = load(opt.inject, '\n'); last_stage = 1; }
    for (size_t i = 0; i < lines.n; i++) {
        if (!lines.v[i].id_at) die("a request without the id 100000000");
        if (lines.v[i].n > longest) longest = lines.v[i].n;
    }
    /* Writes block: with everything in flight fitting into the pipe, the two sides cannot wait for each other. */
    if (longest * (size_t)opt.conc > PIPE_ROOM) die("%d requests of %zu bytes do not fit into a pipe", opt.conc, longest);
    scratch = malloc(PIPE_ROOM + 1);
    in.room = 1 << 20;
    in.p = malloc(in.room);

    double spawned = now();
    spawn(command);
    for (size_t i = 0; i < init.n; i++) {
        send_all(to_server, init.v[i].p, init.v[i].n);
        if (init.v[i].id_at) {
            char *line = await(ID_BASE, &n);
            if (is_error(line, n)) die("handshake refused: %.*s", (int)(n < 600 ? n : 600), line);
        }
    }
    double shaken = now();
    post(0, &lines.v[0], NULL, 0);
    char *line = await(ID_BASE + sent, &n);
    double first = now();
    if (is_error(line, n)) die("first request refused: %.*s", (int)(n < 600 ? n : 600), line);
    printf("{\"init_ms\":%.2f,\"first_ms\":%.2f", (shaken - spawned) * 1e3, (first - spawned) * 1e3);

    if (!opt.start) {
        int waiting = 0;
        stage_began = now();
        for (int v = 0; v < opt.conc; v++, waiting++) begin(v, &lines);
        bool over = false;
        double quiet_since = now();
        while (waiting) {
            double t = now();
            if (opt.inject && stage == 1 && !over) {
                if (!hostile_id && t >= hostile_due) {
                    Line *h = &hostile.v[hostile_sent % (long)hostile.n];
                    hostile_id = INJECT_BASE + ++hostile_sent;
                    patch(h->p + h->id_at, hostile_id);
                    hostile_began = now();
                    send_all(to_server, h->p, h->n);
                }
            }
            if (opt.inject || over) {
                struct pollfd p = {.fd = from_server, .events = POLLIN};
                if (poll(&p, 1, over ? 100 : 2) == 0) {
                    t = now();
                    if (over && t - quiet_since > 2) break; /* the rest is not coming */
                    if (!over && turn_stage(t)) over = true;
                    continue;
                }
            }
            fill();
            t = quiet_since = now();
            while ((line = buffered_line(&n))) {
                long id = answer_id(line, n);
                if (id < 0) continue; /* a notification */
                if (hostile_id && id == hostile_id) {
                    if (stage == 1) keep(&strange, (t - hostile_began) * 1e6);
                    hostile_errors += is_error(line, n);
                    if (!sample) {
                        sample_n = n < 65536 ? n : 65536;
                        sample = malloc(sample_n);
                        memcpy(sample, line, sample_n);
                    }
                    hostile_id = 0;
                    hostile_due = t + opt.gap * 1e-3;
                    continue;
                }
                int v = owner[id & (RING - 1)];
                if (client[v].id != id) { strays++; continue; }
                bool failed = is_error(line, n);
                size_t cursor_n = 0;
                const char *cursor = opt.walk && !failed ? next_cursor(line, n, &cursor_n) : NULL;
                note((t - client[v].began) * 1e6, n + 1, failed, !cursor);
                if (over) { client[v].id = 0; waiting--; }
                else if (cursor) post(v, &lines.v[1], cursor, cursor_n);
                else begin(v, &lines);
            }
            if (!over && turn_stage(t)) over = true;
        }
        if (hostile_id) hostile_pending = (now() - hostile_began) * 1e6;
        printf(",\"strays\":%ld,\"unanswered\":%d,", strays, waiting);
        print_stage(opt.inject ? "before" : "run", &stages[0]);
        if (opt.inject) {
            printf(",");
            print_stage("while", &stages[1]);
            qsort(strange.v, strange.n, sizeof *strange.v, by_value);
            printf(",\"injected\":{\"sent\":%ld,\"answered\":%zu,\"errors\":%ld,\"p50_us\":%.1f,\"max_us\":%.1f,"
                   "\"pending_us\":%.1f,\"sample\":", hostile_sent, strange.n, hostile_errors,
                   percentile(&strange, 0.5), strange.n ? strange.v[strange.n - 1] : 0, hostile_pending);
            print_text(sample ? sample : "", sample_n);
            printf("}");
        }
    }
    Tree t = tree(server);
    printf(",\"rss_kb\":%ld,\"processes\":%d}\n", t.peak_kb, t.processes);
}

/* ---- HTTP: one request in flight a connection ---------------------------------------------------------------- */

typedef struct { int fd; double began; char *p; size_t n, room, need; bool chunked; } Conn;

static int dial(void) {
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons((uint16_t)opt.http)};
    inet_pton(AF_INET, "127.0.0.1", &a.sin_addr);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), one = 1;
    if (connect(fd, (struct sockaddr *)&a, sizeof a)) { close(fd); return -1; }
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    return fd;
}

/* Reads what is there; true when the answer is whole. */
static bool advance(Conn *c) {
    if (c->room - c->n < (1 << 16)) c->p = realloc(c->p, c->room = c->room * 2 + (1 << 17));
    ssize_t k = read(c->fd, c->p + c->n, c->room - c->n - 1);
    if (k <= 0) die("the server closed a connection: %.*s", (int)(c->n < 300 ? c->n : 300), c->p ? c->p : "");
    c->n += (size_t)k;
    c->p[c->n] = 0;
    if (!c->need && !c->chunked) {
        char *body = memmem(c->p, c->n, "\r\n\r\n", 4);
        if (!body) return false;
        for (char *row = c->p; row < body; row = strchr(row, '\n') + 1) {
            if (!strncasecmp(row, "content-length:", 15)) c->need = (size_t)(body - c->p) + 4 + (size_t)atol(row + 15);
            if (!strncasecmp(row, "transfer-encoding:", 18)) c->chunked = true;
        }
        if (!c->need && !c->chunked) die("an answer without length: %.*s", (int)(body - c->p), c->p);
    }
    return c->need ? c->n >= c->need : c->n >= 5 && !memcmp(c->p + c->n - 5, "0\r\n\r\n", 5);
}

static void ask(Conn *c, Lines *lines) {
    Line *line = &lines->v[next_line];
    next_line = (next_line + 1) % lines->n;
    patch(line->p + line->id_at, ID_BASE + ++sent);
    c->n = c->need = 0;
    c->chunked = false;
    c->began = now();
    send_all(c->fd, line->p, line->n);
}

static void run_http(char **command) {
    Lines lines = load(opt.lines, 1);
    Conn *c = calloc((size_t)opt.conc, sizeof *c);
    for (size_t i = 0; i < lines.n; i++) if (!lines.v[i].id_at) die("a request without the id 100000000");
    double spawned = now();
    spawn(command);
    while ((c[0].fd = dial()) < 0) {
        if (waitpid(server, NULL, WNOHANG) == server) { server = 0; die("the server ended"); }
        usleep(1000);
    }
    ask(&c[0], &lines);
    while (!advance(&c[0])) {}
    printf("{\"first_ms\":%.2f", (now() - spawned) * 1e3);
    if (strncmp(c[0].p, "HTTP/1.1 200", 12) || is_error(c[0].p, c[0].n)) die("first request refused: %s", c[0].p);
    int epoll = epoll_create1(EPOLL_CLOEXEC);
    struct epoll_event events[64];
    stage_began = now();
    for (int v = 0; !opt.start && v < opt.conc; v++) {
        if (v && (c[v].fd = dial()) < 0) die("cannot open connection %d", v);
        struct epoll_event e = {.events = EPOLLIN, .data.ptr = &c[v]};
        epoll_ctl(epoll, EPOLL_CTL_ADD, c[v].fd, &e);
        ask(&c[v], &lines);
    }
    for (bool over = opt.start; !over;) {
        int k = epoll_wait(epoll, events, 64, -1);
        double t = now();
        for (int i = 0; i < k; i++) {
            Conn *one = events[i].data.ptr;
            if (!advance(one)) continue;
            bool failed = strncmp(one->p, "HTTP/1.1 200", 12) || is_error(one->p, one->n);
            note((t - one->began) * 1e6, one->n, failed, true);
            ask(one, &lines);
        }
        over = turn_stage(t);
    }
    if (!opt.start) { printf(","); print_stage("run", &stages[0]); }
    Tree t = tree(server);
    printf(",\"rss_kb\":%ld,\"processes\":%d}\n", t.peak_kb, t.processes);
}

int main(int argc, char **argv) {
    int i = 1;
    for (; i < argc && strcmp(argv[i], "--"); i++) {
        const char *name = argv[i];
        if (!strcmp(name, "--walk")) { opt.walk = true; continue; }
        if (!strcmp(name, "--start")) { opt.start = true; continue; }
        const char *value = ++i < argc ? argv[i] : "";
        if (!strcmp(name, "--init")) opt.init = value;
        else if (!strcmp(name, "--lines")) opt.lines = value;
        else if (!strcmp(name, "--inject")) opt.inject = value;
        else if (!strcmp(name, "--log")) opt.log = value;
        else if (!strcmp(name, "--http")) opt.http = atoi(value);
        else if (!strcmp(name, "--conc")) opt.conc = atoi(value);
        else if (!strcmp(name, "--gap")) opt.gap = atof(value);
        else if (!strcmp(name, "--warm-n")) opt.warm_n = atol(value);
        else if (!strcmp(name, "--warm-s")) opt.warm_s = atof(value);
        else if (!strcmp(name, "--warm-max")) opt.warm_max = atof(value);
        else if (!strcmp(name, "--n")) opt.n = atol(value);
        else if (!strcmp(name, "--s")) opt.s = atof(value);
        else if (!strcmp(name, "--max")) opt.max = atof(value);
        else die("unknown option %s", name);
    }
    if (i + 1 >= argc || !opt.lines || (!opt.init && !opt.http)) die("see the head of client.c");
    if (opt.conc < 1 || opt.conc > MAX_CONC) die("--conc 1 to %d", MAX_CONC);
    signal(SIGPIPE, SIG_IGN);
    signal(SIGALRM, on_alarm);
    alarm((unsigned)(opt.warm_max + 2 * opt.max + 60));
    if (opt.http) run_http(argv + i + 1);
    else run_stdio(argv + i + 1);
    stop_server();
    return 0;
}
