// Bookings: the sample tool that needs approval.

/** An hour of a day, some days after tomorrow. */
export function at(day, hour) {
  const date = new Date(Date.now() + (day + 1) * 86_400_000);
  return `${date.toISOString().slice(0, 10)}T${hour}:00:00Z`;
}

/** Tells the puppet to book tea at ten on a day. */
export function booking(day) {
  const event = { title: 'Tea', start_time: at(day, 10), end_time: at(day, 11), attendees: ['ann@example.com'] };
  return `call calendar_create_event ${JSON.stringify(event)}`;
}

/** Asks the puppet to look whether something is booked then. */
export function looking(day) {
  return `call calendar_get_availability ${JSON.stringify({ start_date: at(day, 10), end_date: at(day, 11) })}`;
}
