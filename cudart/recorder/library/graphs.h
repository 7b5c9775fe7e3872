// Graphs: nodes with their parameters, and edges, as they are when a graph is instantiated or a capture ends.
#ifndef DAGRUN_GRAPHS_H
#define DAGRUN_GRAPHS_H

#include "driver.h"

// graph_write writes a RECORD_GRAPH, and those of its child graphs before it.
void graph_write(uint64_t sequence, handle graph, handle execution);
// graph_conditional notes the bodies of a conditional node, which drivers before 13.2 cannot be asked for.
void graph_conditional(handle node, uint64_t kind, const handle *bodies, size_t count);
// graph_changed describes a kernel node that an executable graph gets other parameters for, as RECORD_GRAPH describes kernel nodes, in memory that the caller
// frees. second tells that the parameters are of the second version of their type.
size_t graph_changed(handle node, const struct kernel_node *parameters, int second, unsigned char **body);
// copy_words fills the thirteen words that describe a copy, as CALL_COPY has them from `destination` on.
void copy_words(const struct copy_3d *copy, int peer, uint64_t words[13]);

#endif
