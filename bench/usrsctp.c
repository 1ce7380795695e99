/* One association of usrsctp over UDP (RFC 6951) with CMT and its DAC: what the sender reads from standard input the receiver writes to
 * standard output; at the end each says on standard error what passed. The counterpart of crates/restp/examples/sctp.rs.
 *   cc -O2 -o usrsctp bench/usrsctp.c -lusrsctp
 *   usrsctp recv ADDRESS[,ADDRESS] | usrsctp send ADDRESS[,ADDRESS] TO[,TO]
 */
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <usrsctp.h>

enum { UDP_PORT = 9899, SERVICE = 5001, MOST = 16, BUFFER = 4 << 20 };

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + t.tv_nsec / 1e9;
}

static void fail(const char *what) {
    perror(what);
    exit(1);
}

static int addresses(char *list, int port, struct sockaddr_in *out) {
    int count = 0;
    for (char *one = strtok(list, ","); one && count < MOST; one = strtok(NULL, ",")) {
        memset(&out[count], 0, sizeof *out);
        out[count].sin_family = AF_INET;
        out[count].sin_port = htons(port);
        if (inet_pton(AF_INET, one, &out[count++].sin_addr) != 1)
            fail(one);
    }
    return count;
}

static struct socket *bound(char *list, int port) {
    struct socket *s = usrsctp_socket(AF_INET, SOCK_STREAM, IPPROTO_SCTP, NULL, NULL, 0, NULL);
    if (!s)
        fail("socket");
    struct sctp_udpencaps udp = {0};
    udp.sue_address.ss_family = AF_INET;
    udp.sue_port = htons(UDP_PORT);
    if (usrsctp_setsockopt(s, IPPROTO_SCTP, SCTP_REMOTE_UDP_ENCAPS_PORT, &udp, sizeof udp) < 0)
        fail("SCTP_REMOTE_UDP_ENCAPS_PORT");
    int bytes = BUFFER;
    usrsctp_setsockopt(s, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof bytes);
    usrsctp_setsockopt(s, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof bytes);
    struct sockaddr_in here[MOST];
    int count = addresses(list, port, here);
    if (usrsctp_bindx(s, (struct sockaddr *)here, count, SCTP_BINDX_ADD_ADDR) < 0)
        fail("bindx");
    return s;
}

static void receive(char *here) {
    static char block[1 << 18];
    struct socket *s = bound(here, SERVICE);
    if (usrsctp_listen(s, 1) < 0)
        fail("listen");
    fprintf(stderr, "{\"ready\":true}\n");
    struct socket *a = usrsctp_accept(s, NULL, NULL);
    if (!a)
        fail("accept");
    unsigned long bytes = 0;
    double began = 0;
    for (;;) {
        struct sockaddr_in from;
        socklen_t from_bytes = sizeof from, info_bytes = 0;
        unsigned int info = 0;
        int flags = 0;
        ssize_t n = usrsctp_recvv(a, block, sizeof block, (struct sockaddr *)&from, &from_bytes, NULL, &info_bytes, &info, &flags);
        if (n <= 0)
            break;
        if (flags & MSG_NOTIFICATION)
            continue;
        if (!bytes)
            began = now();
        bytes += n;
        if (fwrite(block, 1, n, stdout) != (size_t)n)
            fail("output");
    }
    fflush(stdout);
    fprintf(stderr, "{\"bytes\":%lu,\"seconds\":%.3f}\n", bytes, now() - began);
    usrsctp_close(a);
}

static void send_all(char *here, char *there, size_t message) {
    struct socket *s = bound(here, 0);
    struct sockaddr_in peers[MOST];
    addresses(there, SERVICE, peers);
    /* The first address; INIT ACK names the others. */
    if (usrsctp_connect(s, (struct sockaddr *)peers, sizeof *peers) < 0)
        fail("connect");
    char *block = malloc(message);
    unsigned long bytes = 0;
    double began = now();
    size_t n;
    while ((n = fread(block, 1, message, stdin)) > 0) {
        struct sctp_sndinfo info = {0};
        if (usrsctp_sendv(s, block, n, NULL, 0, &info, sizeof info, SCTP_SENDV_SNDINFO, 0) < 0)
            fail("send");
        bytes += n;
    }
    usrsctp_shutdown(s, SHUT_WR);
    /* Until the other end has closed as well. */
    struct sockaddr_in from;
    socklen_t from_bytes = sizeof from, info_bytes = 0;
    unsigned int info = 0;
    int flags = 0;
    while (usrsctp_recvv(s, block, message, (struct sockaddr *)&from, &from_bytes, NULL, &info_bytes, &info, &flags) > 0)
        ;
    fprintf(stderr, "{\"bytes\":%lu,\"seconds\":%.3f}\n", bytes, now() - began);
}

int main(int count, char **words) {
    if (count < 3 || (strcmp(words[1], "recv") && (strcmp(words[1], "send") || count < 4))) {
        fprintf(stderr, "usage: usrsctp recv ADDRESS[,ADDRESS] | send ADDRESS[,ADDRESS] TO[,TO] [MESSAGE_BYTES]\n");
        return 2;
    }
    usrsctp_init(UDP_PORT, NULL, NULL);
    usrsctp_sysctl_set_sctp_cmt_on_off(SCTP_CMT_BASE);
    usrsctp_sysctl_set_sctp_cmt_use_dac(1);
    usrsctp_sysctl_set_sctp_blackhole(2);
    if (!strcmp(words[1], "recv"))
        receive(words[2]);
    else
        send_all(words[2], words[3], count > 4 ? strtoul(words[4], NULL, 10) : 1400);
    fflush(stderr);
    _exit(0); /* its threads never end */
}
