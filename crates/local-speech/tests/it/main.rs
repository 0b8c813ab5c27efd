//! The engines as their users see them: with stand-ins for their programs, and with the real ones where they are installed.
