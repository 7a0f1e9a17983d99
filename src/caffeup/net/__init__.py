"""Nets: read, check, rewrite and measure them without Caffe.

From the bottom up, each module knowing only those before it::

    text.parse(bytes) -> Document     the syntax tree of a prototxt; every byte stays reachable, so edits keep the rest
    schema.read_proto(text) -> Schema messages, fields, defaults and enums of any tree's caffe.proto
    model.read_net(document) -> Net   layers (new and V1), inputs; model.as_run(net, state) is what Caffe runs:
                                      filtered for a phase, Input layer in front, automatic tops and splits added
    shapes.infer(layers, given=…)     shapes of all blobs and parameters, and where they cannot be told, why

Nothing in here touches a disk: ``app.nets`` reads and writes the files. What a user did wrong in a file is a
``UsageError`` with a Finding where the file cannot be read at all, and a Finding in the result otherwise.
"""
