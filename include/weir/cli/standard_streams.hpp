// Standard input, output and error of the process.
#pragma once

namespace weir::cli {

// Opens /dev/null for each of the descriptors 0 to 2 that the caller of this program has closed. Otherwise
// the next socket or file would get such a number, and weir would write log lines into it. The replacement of
// standard output can only be read, so that writing to it still fails.
//
// Must be called before anything else opens a descriptor.
void open_standard_streams();

}  // namespace weir::cli
