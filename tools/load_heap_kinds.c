// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * python3, perl, node and awk read text files of the system and make objects,
 * arrays and indexes of the words; cc1 compiles generated C. Each goes to
 * sleep (or compiles on) when it has enough, and is stopped before that.
 */
#include "load_heap_kinds.h"

#include <errno.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "cleanup.h"
#include "load_rng.h"

static const char python_script[] =
	"import os, signal, sys\n"
	"left = int(sys.argv[1])\n"
	"class Entry:\n"
	"    def __init__(self, path, number, words):\n"
	"        self.path = path\n"
	"        self.number = number\n"
	"        self.words = words\n"
	"        self.weight = number / (len(words) + 1)\n"
	"entries, index, lengths = [], {}, {}\n"
	"roots = [os.path.dirname(os.__file__), '/usr/lib/python3', '/usr/share/perl', '/usr/include', "
	"'/usr/share/doc']\n"
	"def texts():\n"
	"    for root in roots:\n"
	"        for folder, folders, names in os.walk(root):\n"
	"            for name in names:\n"
	"                path = os.path.join(folder, name)\n"
	"                if name.endswith(('.py', '.pm', '.pl', '.h', 'copyright')) and os.path.isfile(path):\n"
	"                    yield path\n"
	"for path in texts():\n"
	"    try:\n"
	"        text = open(path, errors='replace').read(1 << 18)\n"
	"    except OSError:\n"
	"        continue\n"
	"    for number, line in enumerate(text.splitlines()):\n"
	"        words = line.split()\n"
	"        entries.append(Entry(path, number, words))\n"
	"        for word in words:\n"
	"            index.setdefault(word, []).append(number)\n"
	"            lengths[(path, word)] = len(line)\n"
	"    left -= len(text)\n"
	"    if left <= 0:\n"
	"        break\n"
	"while True:\n"
	"    signal.pause()\n";

static const char perl_script[] =
	"use strict; use File::Find;\n"
	"my $left = shift; my (@entries, %index, %pairs);\n"
	"sub take {\n"
	"    my $path = $File::Find::name;\n"
	"    return if $left <= 0 || $path !~ /(\\.(pm|pl|pod|py|h)|copyright)$/ || !-f $path;\n"
	"    open(my $file, '<', $path) or return;\n"
	"    my ($number, $last) = (0, '');\n"
	"    while (my $line = <$file>) {\n"
	"        my @words = split ' ', $line;\n"
	"        push @entries, { path => $path, number => $number++, words => [@words], line => $line };\n"
	"        for my $word (@words) { push @{$index{$word}}, $number; $pairs{\"$last $word\"}++; $last = $word; }\n"
	"        $left -= length $line;\n"
	"    }\n"
	"}\n"
	"find({ wanted => \\&take, no_chdir => 1 }, grep { -d } (@INC, '/usr/share/doc', '/usr/include', "
	"'/usr/lib/python3'));\n"
	"sleep 1000 while 1;\n";

static const char node_script[] =
	"const fs = require('fs'), path = require('path');\n"
	"let left = Number(process.argv[1]); const entries = [], index = new Map(), pairs = {};\n"
	"function take(file) {\n"
	"  let number = 0, last = '';\n"
	"  const text = fs.readFileSync(file, 'utf8');\n"
	"  for (const line of text.split('\\n')) {\n"
	"    const words = line.split(/\\s+/);\n"
	"    entries.push({ file, number: number++, words, weight: number / words.length });\n"
	"    for (const word of words) {\n"
	"      if (!index.has(word)) index.set(word, []);\n"
	"      index.get(word).push(number); pairs[last + word] = number; last = word;\n"
	"    }\n"
	"  }\n"
	"  left -= text.length;\n"
	"}\n"
	"function walk(folder) {\n"
	"  let list; try { list = fs.readdirSync(folder, { withFileTypes: true }); } catch { return; }\n"
	"  for (const item of list) {\n"
	"    if (left <= 0) return;\n"
	"    const name = path.join(folder, item.name);\n"
	"    if (item.isDirectory()) walk(name);\n"
	"    else if (item.isFile() && /\\.(js|json|py|pm|h)$/.test(name)) try { take(name); } catch {}\n"
	"  }\n"
	"}\n"
	"for (const root of ['/usr/share/nodejs', '/usr/include', '/usr/lib/python3', '/usr/share/perl', "
	"'/usr/share/doc']) walk(root);\n"
	"setInterval(() => entries.length, 1000000);\n";

static const char awk_script[] =
	"BEGIN {\n"
	"    left = ARGV[1]; last = \"\"\n"
	"    find = \"find /usr/share/perl /usr/lib/python3 /usr/include /usr/share/doc -type f \" \\\n"
	"        \"\\\\( -name '*.p[lm]' -o -name '*.py' -o -name '*.h' -o -name copyright \\\\) 2>/dev/null\"\n"
	"    while (left > 0 && (find | getline path) > 0) {\n"
	"        number = 0\n"
	"        while ((getline line < path) > 0) {\n"
	"            count = split(line, words)\n"
	"            lines[path, number++] = line\n"
	"            for (i = 1; i <= count; i++) { index_of[words[i]] = index_of[words[i]] \" \" number; "
	"pairs[last, words[i]]++; last = words[i] }\n"
	"            left -= length(line)\n"
	"        }\n"
	"        close(path)\n"
	"    }\n"
	"    while (1) system(\"sleep 1000\")\n"
	"}\n";

/* One function of the kind that programs have: locals, a loop, calls, member accesses. */
static void write_function(FILE *file, struct load_rng *rng, unsigned number)
{
	unsigned fields = 3 + load_rng_below(rng, 6);

	fprintf(file, "struct record_%u { struct record_%u *next; ", number, number);
	for (unsigned i = 0; i < fields; i++)
		fprintf(file, "%s member_%u_%u; ", load_rng_below(rng, 2) ? "long" : "const char *", number, i);
	fprintf(file, "};\nlong handle_%u(struct record_%u *record, long limit)\n{\n\tlong sum = limit;\n", number,
		number);
	fprintf(file, "\tfor (long i = 0; record && i < limit; i++, record = record->next) {\n");
	for (unsigned i = 0; i < fields; i++) {
		fprintf(file, "\t\tif (sum %% %u == %u)\n", 3 + load_rng_below(rng, 90), i);
		fprintf(file, "\t\t\tsum += (long)record->member_%u_%u * %u;\n", number, i, load_rng_below(rng, 5000));
	}
	if (number)
		fprintf(file, "\t\tsum ^= handle_%u((void *)record, sum);\n", load_rng_below(rng, number));
	fprintf(file, "\t}\n\treturn sum;\n}\n");
}

/* Generated C in a memory file, one function for every 12 KiB of heap: compiling at -O2 keeps them all in memory. */
static int open_c_source(uint64_t heap_bytes)
{
	CLEANUP(close_fd) int fd = memfd_create("source", MFD_CLOEXEC);
	CLEANUP(fclose) FILE *file = NULL;
	struct load_rng rng = load_rng_seeded(1, 1);
	char path[64];

	if (fd < 0)
		return -errno;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	file = fopen(path, "we");
	if (!file)
		return -errno;
	for (unsigned i = 0; i < heap_bytes / 12288 + 100; i++)
		write_function(file, &rng, i);
	if (fflush(file) != 0)
		return -errno;
	return take_fd(&fd);
}

const struct load_heap_kind load_heap_kinds[] = {
	{"python3", "python3", NULL, {"-S", "-c", NULL}, python_script, NULL},
	{"perl", "perl", NULL, {"-e", NULL}, perl_script, NULL},
	{"cc1", "gcc", "cc1", {"-quiet", "-O2", "-o", "/dev/null", NULL}, NULL, open_c_source},
	{"node", "node", NULL, {"-e", NULL}, node_script, NULL},
	{"awk", "awk", NULL, {NULL}, awk_script, NULL},
	{NULL, NULL, NULL, {NULL}, NULL, NULL},
};
