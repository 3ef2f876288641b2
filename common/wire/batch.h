// SPDX-License-Identifier: Apache-2.0
// Batches: rows that a call splits into pieces for its ranks, and joins again from their results. Two forms:
//
//   a safetensors document   dimension 0 of every tensor is the row. In __metadata__: `cadre.columns`, a JSON object of
//                            lists with one value per row, for values that are not tensors; `cadre.meta`, a JSON
//                            object; other members. Every piece gets the last two as they are
//   a JSON object of lists   of equal length: {"prompt": ["a", "b"], "n": [1, 2]}
//
// Values are never read or copied: a piece is a scatter list over the document, with a new head. Pure. Results are in
// the caller's arena, and do not refer to the document after it is read.
#pragma once

#include "common/wire/safetensors.h"

#include <stdbool.h>

#define BATCH_COLUMNS "cadre.columns"
#define BATCH_META "cadre.meta"
#define BATCH_OBJECT "cadre.object" // in the metadata of a document that is not a batch: a pickled object of Python
#define BATCH_PARTS_MAX ((size_t)32 << 10) // tensors, or columns of JSON, of all pieces or results together
#define BATCH_NAME_MAX ((size_t)1024)      // bytes of the name of a column, as of a tensor
#define BATCH_CELLS_MAX ((size_t)4 << 20)  // values in columns: 8 bytes of memory for 2 of text

struct batch_cell {
    uint32_t begin, end; // of one value, in the column's text
};

struct batch_column {
    const char *name; // as JSON has it between the quotes, escapes as they are
    const char *text; // the text with the cells; NULL = the document
    size_t n;
    // private
    struct batch_cell **blocks; // of BATCH_BLOCK cells each; the last one may have room for more cells
    size_t n_blocks, room;      // room: of the last one
};

enum { BATCH_BLOCK = 4096 };

static inline const struct batch_cell *batch_cell(const struct batch_column *c, size_t row)
{
    return &c->blocks[row / BATCH_BLOCK][row % BATCH_BLOCK];
}

struct batch {
    bool json;
    size_t rows; // 0 if there is neither a tensor nor a column
    struct safetensors doc;
    struct batch_column *columns;
    size_t n_columns;
    size_t n_cells;                      // in all columns
    const struct batch_column **by_name; // private
};

// Whether a body is a safetensors document. Otherwise it is JSON, which has no byte 0. The first bytes may be any in
// both, so the high bytes of the length decide: they are 0.
bool batch_is_safetensors(const char *data, size_t len);
// ERR_INVALID and ERR_LIMIT name the tensor, the column or cadre.meta.
int batch_read(const char *data, size_t len, struct arena *a, struct batch *ret, struct err *err);

// The same for a safetensors document. Only its head need be there: ret->doc.len says how long it is.
int batch_read_head(const char *data, size_t len, struct arena *a, struct batch *ret, struct err *err);
// Whether a document that is made of this one has its tensors in the same order.
bool batch_in_order(const struct batch *b);

// __metadata__ of a new document: columns and meta are texts of JSON objects, or NULL. Returns how many members.
size_t batch_metadata(const char *columns, const char *meta, struct safetensors_meta ret[2]);

const struct batch_column *batch_column(const struct batch *b, const char *name); // or NULL

// ERR_LIMIT if n pieces or results like this have too many tensors or columns together.
int batch_check_parts(const struct batch *b, size_t n, struct err *err);
// How many rows each of n pieces has, and how many rows are added for that by repeating the last row. ERR_INVALID if
// the rows cannot be split evenly and `pad` is false.
int batch_pieces(size_t rows, size_t n, bool pad, size_t *ret_each, size_t *ret_added, struct err *err);
size_t batch_padding(size_t rows, size_t each, size_t piece); // how many rows of that piece are repeated ones
// Adds `n` values of a column, with the commas between them. `source`: the number of its document in `out`.
void batch_add_cells(const struct batch_column *c, size_t from, size_t n, uint32_t source, struct scatter *out);
// The tensors of a document that is made of this one and has so many rows, in their order.
struct safetensors_tensor *batch_tensors(const struct batch *b, size_t rows, struct arena *a);
// The rows from `from` on, as a document of the same form. Rows after the last one repeat it. Parts have source 0.
int batch_slice(const struct batch *b, size_t from, size_t rows, struct arena *a, struct scatter *out, struct err *err);
