// Graphs: nodes with their parameters, and edges, as they are when a graph is instantiated or a capture ends.
#ifndef DAGRUN_GRAPHS_H
#define DAGRUN_GRAPHS_H

#include "driver.h"

// graph_write writes a RECORD_GRAPH, and those of its child graphs before it.
void graph_write(uint64_t sequence, handle graph, handle execution);
// graph_conditional notes the bodies of a conditional node, which drivers before 13.2 cannot be asked for.
void graph_conditional(handle node, uint64_t kind, const handle *bodies, size_t count);
// copy_words fills the thirteen words that describe a copy, as CALL_COPY has them from `destination` on.
void copy_words(const struct copy_3d *copy, int peer, uint64_t words[13]);

#endif
